import { advised, type FindingTexts, fine } from './finding-text.ts';

/** Texts of the findings about processes, the upkeep of the database and the keys of CARILLON_SECRET, by code; `{name}` is a parameter. */
export const upkeepTexts = {
  processClock: advised(
    [
      "the clock of the {kind} on {host} (pid {pid}) differs by {seconds} s from the database's",
      'Let all machines take their time from NTP.',
    ],
    [
      '{host} 上的 {kind} 进程（pid {pid}）的时钟与数据库相差 {seconds} 秒',
      '请让所有机器通过 NTP 同步时间。',
    ],
  ),
  filesFine: fine('no process comes near its limit of open files', '没有进程接近打开文件数的上限'),
  filesScarce: advised(
    [
      'the {kind} on {host} (pid {pid}) may open {max} files and has {used} connections',
      'Raise its limit (LimitNOFILE of systemd, ulimits of the container): every connection of a device is an open file.',
    ],
    [
      '{host} 上的 {kind} 进程（pid {pid}）最多可打开 {max} 个文件，目前有 {used} 个连接',
      '请提高该上限（systemd 的 LimitNOFILE，或容器的 ulimits）：每个设备连接都占用一个打开的文件。',
    ],
  ),
  dutiesFine: fine('{duties} background duties succeed', '{duties} 个后台任务都正常'),
  dutyStands: advised(
    [
      'the background duty "{duty}" last succeeded {minutes} minutes ago',
      'Look for `a background duty failed` in the log of the dispatchers.',
    ],
    [
      '后台任务“{duty}”上次成功是在 {minutes} 分钟前',
      '请在 dispatcher 的日志中查找 `a background duty failed`。',
    ],
  ),
  autovacuumFine: fine('autovacuum runs and keeps up', 'autovacuum 正常运行'),
  autovacuumOff: advised(
    ['autovacuum is off', 'Set autovacuum = on: without it tables grow, and the database stops in the end.'],
    ['autovacuum 已关闭', '请设置 autovacuum = on：否则表会不断膨胀，最终数据库会停止服务。'],
  ),
  autovacuumOffFor: advised(
    ['autovacuum is off for {tables}', 'Run `ALTER TABLE … RESET (autovacuum_enabled)`.'],
    ['{tables} 的 autovacuum 已关闭', '请执行 `ALTER TABLE … RESET (autovacuum_enabled)`。'],
  ),
  deadRows: advised(
    [
      '{table} has {dead} dead rows beside {live} live ones',
      'See whether an old transaction holds them; else raise autovacuum_vacuum_cost_limit, or run VACUUM.',
    ],
    [
      '{table} 有 {dead} 行无效数据，有效数据 {live} 行',
      '请检查是否有长事务占用；否则请调高 autovacuum_vacuum_cost_limit，或执行 VACUUM。',
    ],
  ),
  snapshotsFine: fine('no transaction is older than an hour', '没有超过一小时的事务'),
  oldSnapshot: advised(
    [
      'a transaction of "{application}" (pid {pid}) is {minutes} minutes old; dead rows stay until it ends',
      'End it: `SELECT pg_terminate_backend({pid})`.',
    ],
    [
      '“{application}”（pid {pid}）的事务已持续 {minutes} 分钟；在它结束前无法清理无效数据',
      '请结束该事务：`SELECT pg_terminate_backend({pid})`。',
    ],
  ),
  idleSlot: advised(
    [
      'nobody reads the replication slot {slot}: it keeps {megabytes} MB of the log, which fills the disk',
      'Start its standby, or drop it: `SELECT pg_drop_replication_slot(…)`.',
    ],
    [
      '没有备库读取复制槽 {slot}：它保留了 {megabytes} MB 日志，会占满磁盘',
      '请启动其备库，或删除该复制槽：`SELECT pg_drop_replication_slot(…)`。',
    ],
  ),
  wraparoundFar: fine(
    '{millions} million transactions since the oldest frozen one, of 2,147',
    '距最早冻结的事务已有 {millions} 百万个事务，上限为 2,147 百万',
  ),
  wraparoundNear: advised(
    [
      '{millions} million transactions since the oldest frozen one: at 2,147 million the database refuses to write',
      'See what stops autovacuum (old transactions, slots), then run `VACUUM FREEZE` on the oldest tables.',
    ],
    [
      '距最早冻结的事务已有 {millions} 百万个事务：达到 2,147 百万时数据库将拒绝写入',
      '请检查什么阻止了 autovacuum（长事务、复制槽），然后对最旧的表执行 `VACUUM FREEZE`。',
    ],
  ),
  candidateUnchecked: advised(
    [
      'the staged credentials of profile {connector}/{profile} of app {app} failed their check: {detail}',
      'Stage others: `carillon profile stage`; no push uses these.',
    ],
    [
      '应用 {app} 的配置 {connector}/{profile} 的候选凭证未通过检查：{detail}',
      '请提交其他凭证：`carillon profile stage`；推送不会使用这些凭证。',
    ],
  ),
  candidateRolledBack: advised(
    [
      'the new credentials of profile {connector}/{profile} of app {app} were rolled back: {detail}',
      'The current ones go on to send. See `carillon profile status`, and stage others.',
    ],
    [
      '应用 {app} 的配置 {connector}/{profile} 的新凭证已回退：{detail}',
      '当前凭证继续用于发送。请查看 `carillon profile status`，并提交其他凭证。',
    ],
  ),
  secretKeysFine: fine(
    'all values are encrypted under the first key of CARILLON_SECRET, {first}',
    '所有数据都使用 CARILLON_SECRET 的第一个密钥 {first} 加密',
  ),
  oldSecretValues: advised(
    [
      '{values} values of {column} are not under the first key of CARILLON_SECRET',
      'Run `carillon secret rotate`; keep the other keys until it says that nothing needs them.',
    ],
    [
      '{column} 中有 {values} 个值没有使用 CARILLON_SECRET 的第一个密钥加密',
      '请执行 `carillon secret rotate`；在它说明不再需要旧密钥之前，请保留其他密钥。',
    ],
  ),
  secretsUncounted: advised(
    [
      'the values under the keys of CARILLON_SECRET could not be counted in time',
      'Run `carillon secret rotate`: it counts them, and says what is left.',
    ],
    [
      '未能及时统计使用 CARILLON_SECRET 各密钥加密的数据',
      '请执行 `carillon secret rotate`：它会统计并说明剩余数量。',
    ],
  ),
  otherSecretKeys: advised(
    [
      'the {kind} on {host} (pid {pid}) has other keys than the first one here, or another first key',
      'Restart it with the same CARILLON_SECRET.',
    ],
    [
      '{host} 上的 {kind} 进程（pid {pid}）的密钥或第一个密钥与此处不同',
      '请使用相同的 CARILLON_SECRET 重启它。',
    ],
  ),
} as const satisfies Record<string, FindingTexts>;
