/**
 * Settings for statements on groups of saves. Their plans are made once and look each row up by an index, however few
 * rows the table has then. A lock ends a group soon, because saves of several apps wait with it.
 */
export const saveSettings = {
  lock_timeout: '100ms',
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_sort: 'off',
  enable_bitmapscan: 'off',
  cpu_index_tuple_cost: 1000,
  jit: 'off',
};

/**
 * The same for a spread database, whose plans are made by the server of the app: Citus chooses it by the values, so that it
 * refuses a plan that is made for all of them.
 */
export const spreadSaveSettings = { lock_timeout: saveSettings.lock_timeout, jit: 'off' };
