/* SPDX-License-Identifier: MIT */
/*
 * Controllers are made here, because only here tn_manager is known.
 */
#include "controller/controller_internal.h"
#include "manager/manager_internal.h"

tn_status tn_controller_create(tn_manager *m, const tn_controller_config *config,
                               tn_controller **out) {
    tn_controller_config c = TN_CONTROLLER_CONFIG_INIT;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK && config)
        status = tn__struct_in(&c, sizeof c, offsetof(tn_controller_config, binding), config,
                               "tn_controller_config");
    if (status == TN_OK)
        status = tn__life_enter_parent(m->life);
    if (status != TN_OK)
        return tn__done(m, status);
    tn__controlled of = {.manager = m,
                         .id = m->id,
                         .store = m->store,
                         .life = m->life,
                         .trans = m->trans,
                         .driver = m->driver,
                         .serial = tn__trans_serial(m->trans)};
    return tn__done(m, tn__controller_create(&of, &c, out));
}
