#include "controller/controller_priv.h"
void tn__uses_collect(tn_controller *c) { (void)c; }
