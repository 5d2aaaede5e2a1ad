import { textDetails } from './text-details.ts';

/**
 * Texts of refusals and warnings that are not those of the table of errors, in English, as they are written, and in
 * Chinese. `{name}` is a member. The first that fits counts.
 */
export const detailTexts = {
  otherApps: ['This token is for other apps.', '该令牌只用于其他应用。'],
  roleNeeded: [
    'This call needs the role {needed}; this token has the role {role}.',
    '该调用需要{needed}角色；该令牌的角色是{role}。',
  ],
  sessionElsewhere: [
    'A session of the console counts for requests of the console only.',
    '控制台的会话只用于控制台的请求。',
  ],
  jsonBodies: [
    'The admin API takes bodies of the content type application/json.',
    '管理 API 只接受类型为 application/json 的请求体。',
  ],
  tooDeep: ['The JSON is nested too deeply or has too many values.', 'JSON 嵌套过深，或者值过多。'],
  bodyBelow: ['The body must be under {limit} bytes.', '请求体必须小于 {limit} 字节。'],
  bytesAsJson: ['It may have {bytes} bytes as JSON.', '其 JSON 最多 {bytes} 字节。'],
  replyTooLarge: [
    'The reply would be too large: ask for fewer rows, or include fewer names.',
    '回复会过大：请减少行数或 include 的名称。',
  ],
  malformedUrl: ['Malformed URL.', 'URL 格式错误。'],
  ambiguousPath: [
    'A part of the path is "." or "..", or contains a backslash or an encoded slash.',
    '路径中有“.”或“..”，或者含有反斜杠或编码的斜杠。',
  ],
  profileDetails: ['The details of profiles need the role operator.', '查看配置的详情需要运维角色。'],
  noKey: ['There is no such key: expected one of {names}.', '没有此密钥，应为以下之一：{names}。'],
  oneExpiry: [
    'expiration_time and expiration_interval exclude each other.',
    'expiration_time 和 expiration_interval 只能使用一个。',
  ],
  pushTimeRequired: ['push_time is required.', '缺少 push_time。'],
  pushTimePast: ['push_time: it is past.', 'push_time 已经过去。'],
  pushTimeFar: ['push_time: at most ten years ahead.', 'push_time 最多在十年之后。'],
  ...textDetails,
  localPushMoved: [
    'A push at local time is not moved: cancel it and send it again.',
    '按当地时间发送的推送不能改期：请取消后重新发送。',
  ],
  localTimeNeeded: [
    'push_time: with push_time_local it is a time without a zone, such as 2026-12-01T09:00:00.',
    '使用 push_time_local 时，push_time 是不带时区的时间，例如 2026-12-01T09:00:00。',
  ],
  localTimePast: ['push_time: it is past in every time zone.', 'push_time 在所有时区都已经过去。'],
  defaultZoneAlone: [
    'default_time_zone goes with push_time_local.',
    'default_time_zone 只能与 push_time_local 一起使用。',
  ],
  expiresBefore: [
    'It would expire at {at}, before it is sent: send expiration_time too.',
    '推送会在 {at} 过期，早于发送时间：请同时提供 expiration_time。',
  ],
  tokenCalls: ['This token made {n} calls within a minute.', '该令牌在一分钟内调用了 {n} 次。'],
  tokenChanges: ['This token made {n} changes within a minute.', '该令牌在一分钟内更改了 {n} 次。'],
  tokenLogins: ['This token made {n} logins within a minute.', '该令牌在一分钟内登录了 {n} 次。'],
  linkUsed: ['The link is used up or has expired.', '该链接已经使用过，或者已经过期。'],
  sessionNoLinks: ['A session creates no login links: send a token.', '会话不能创建登录链接：请使用令牌。'],
  noSession: ['There is no such session.', '没有此会话。'],
  noToken: ['There is no such token.', '没有此令牌。'],
  expiresPast: ['expiresAt is in the past.', 'expiresAt 已经过去。'],
  tooManyTokens: ['There are {n} tokens already: delete one first.', '已有 {n} 个令牌：请先删除一个。'],
  appExists: ['There is an app with this id already.', '已有使用此 ID 的应用。'],
  appIdTwice: ['appId: expected the id of the app that the path names.', 'appId 应为路径中应用的 ID。'],
  keysDiffer: [
    'appKey, masterKey and hookKey must differ from each other.',
    'appKey、masterKey 和 hookKey 必须互不相同。',
  ],
  noApp: ['There is no such app.', '没有此应用。'],
  noBreaker: [
    'There is no such breaker: its id is <connector>:<appId>:<profile> of a push profile.',
    '没有此熔断器：其 ID 是推送配置的 <connector>:<appId>:<profile>。',
  ],
  moreMatch: [
    'More than {n} installations match: count them again.',
    '符合条件的设备超过 {n} 台：请重新计数。',
  ],
  othersMatch: [
    '{found} installations match, not {expected}.',
    '符合条件的设备有 {found} 台，而不是 {expected} 台。',
  ],
  noInstallation: ['There is no such installation.', '没有此设备。'],
  memberNeedsOperator: [
    'A condition on {member} needs the role operator; `q` finds a whole token.',
    '按 {member} 设置条件需要运维角色；用 q 可以查找完整的令牌。',
  ],
  shortenedValue: [
    '{member}: the value is shortened; write the whole one.',
    '{member} 的值是缩短过的：请填写完整的值。',
  ],
  spellingNeedsOperator: [
    'A pattern, a range of texts or an order over {member} of users needs the role operator.',
    '对用户的 {member} 使用正则、文本范围或排序需要运维角色。',
  ],
  usersNeedOperator: [
    'A condition on users needs the role operator; `q` finds an objectId.',
    '按用户设置条件需要运维角色；用 q 可以查找 objectId。',
  ],
  unknownTopic: [
    'topics: expected push:<appId>/<objectId>, overview:<appId>, breakers or queues.',
    'topics 应为 push:<appId>/<objectId>、overview:<appId>、breakers 或 queues。',
  ],
  tooManyTopics: ['topics: at most {n} at once.', 'topics 一次最多 {n} 个。'],
  noCandidate: [
    'There is no checked candidate: the rotation is {state}.',
    '没有检查过的候选凭据：轮换的状态是 {state}。',
  ],
  nothingBefore: [
    'There is neither a candidate nor a version before it.',
    '既没有候选凭据，也没有之前的版本。',
  ],
  neverStaged: [
    'The credentials of this profile were never staged, or there is no such profile.',
    '该配置没有候选凭据，或者没有此配置。',
  ],
  noProfile: ['There is no such profile.', '没有此配置。'],
  profileName: [
    'A profile name is _default, or begins with a letter and holds letters, digits and underscores only, at most 64.',
    '配置名为 _default，或者以字母开头，只含字母、数字和下划线，最多 64 个字符。',
  ],
  noQueue: ['There is no such queue.', '没有此队列。'],
  callerGone: ['The caller has closed the connection.', '调用方已经关闭连接。'],
  serviceNotFrozen: ['The service is not frozen.', '服务没有冻结。'],
  appNotFrozen: ['This app is not frozen.', '该应用没有冻结。'],
  nothingFailed: [
    'The push has no recipient that certainly did not get it.',
    '该推送没有可以确定未收到的设备。',
  ],
  wasCancelled: ['The push was cancelled.', '该推送已经取消。'],
  stillOpen: [
    'The push is {state}: some of its recipients are open.',
    '推送的状态是{state}：还有设备没有结果。',
  ],
  redriveRuns: [
    'The push is sent again already: {objectId} does not know its recipients yet.',
    '该推送已经在重发：{objectId} 还没有确定设备。',
  ],
  redriveDone: [
    'The push was sent again already: send {objectId} again.',
    '该推送已经重发过：请重发 {objectId}。',
  ],
  atMostSaved: ['An app has at most {n} of them.', '每个应用最多 {n} 个。'],
  nothingNamed: ['There is nothing of this name.', '没有此名称的内容。'],
  itemName: [
    'A name has 1 to {n} characters, none of them a control or a format character.',
    '名称为 1 到 {n} 个字符，不能含控制字符或格式字符。',
  ],
  itemPath: [
    'A name must not contain a slash or a backslash, or be "." or "..".',
    '名称不能含斜杠或反斜杠，也不能是“.”或“..”。',
  ],
  keysOfRequest: ['Idempotency-Key and req_id differ.', 'Idempotency-Key 与 req_id 不一致。'],
  dayRange: ['`to` must be after `from`, by less than {n} days.', 'to 必须在 from 之后，相差不到 {n} 天。'],
  unknownVendor: ['vendor: not a vendor that this service knows.', 'vendor 不是本服务支持的厂商。'],
  ownPushes: [
    'The role sender controls the pushes of its own token; others need operator.',
    '发送者角色只能控制自己令牌的推送；其他推送需要运维角色。',
  ],
  needsApproval: ['The push waits for the approval of a second person.', '该推送在等待另一个人批准。'],
  secondPerson: [
    'A second person approves a push: this token sent it.',
    '推送需要另一个人批准：它是由该令牌发送的。',
  ],
  secondName: [
    'A second person approves a push: a token of the same name sent it.',
    '推送需要另一个人批准：它是由同名的令牌发送的。',
  ],
  secondApproval: [
    'An owner or an operator of another name gives the second approval.',
    '第二次批准需要由所有者或另一个名称的运维给出。',
  ],
  privateAddress: [
    '{member}: the address is private, and CARILLON_PRIVATE_HOSTS of the service does not list it.',
    '{member}：该地址是内网地址，服务的 CARILLON_PRIVATE_HOSTS 未列出它。',
  ],
  inexactNumber: [
    '{member}: this number cannot be kept exactly; send it as a text.',
    '{member}：该数字无法精确保存，请改用文本发送。',
  ],
  ownerOption: ['{option}: only an owner changes it.', '{option} 只能由所有者修改。'],
  wrongState: ['The push is {state} and cannot be {verb}.', '推送的状态是{state}，不能{verb}。'],
  scheduledLimit: [
    'At most {n} scheduled pushes may be pending on a {plan} app.',
    '{plan} 应用最多有 {n} 个等待中的定时推送。',
  ],
  scheduledId: [
    'The id of a scheduled push is the integer that its entry shows.',
    '定时推送的 ID 是列表中显示的整数。',
  ],
  notScheduled: [
    'No push is scheduled under this id: it was sent, cancelled, or never was.',
    '没有此 ID 的定时推送：已经发送、取消，或者从未存在。',
  ],
  cronLength: ['expression: at most {n} characters.', 'expression 最多 {n} 个字符。'],
  cronFields: [
    'expression: expected five fields: minute, hour, day of the month, month, day of the week.',
    'expression 应有五个字段：分、时、日、月、星期。',
  ],
  cronDistance: ['expression: at most one push every {n} minutes.', 'expression 最多每 {n} 分钟一次推送。'],
  cronHorizon: ['expression: it names no time within ten years.', 'expression 在十年内没有任何时间。'],
  cronExpression: ['expression: {why}.', 'expression 不是有效的 cron 表达式：{why}。'],
  cronZone: [
    'timeZone: expected an IANA time zone, such as Asia/Shanghai.',
    'timeZone 应为 IANA 时区，例如 Asia/Shanghai。',
  ],
  recurringOrder: ['endsAt: it must be after startsAt.', 'endsAt 必须晚于 startsAt。'],
  recurringEnded: ['endsAt: no time is left before it.', 'endsAt 之前没有剩余的时间。'],
  recurringMember: ['body: {member} does not go with a recurring push.', 'body：周期推送不能使用 {member}。'],
  recurringLimit: ['An app has at most {n} recurring pushes.', '一个应用最多有 {n} 个周期推送。'],
  recurringName: ['name: another recurring push of the app has it.', '该应用的另一个周期推送已使用此名称。'],
  noRecurring: ['There is no such recurring push.', '没有此周期推送。'],
  dataIsDictionary: ['data: expected a JSON dictionary.', 'data 应为 JSON 对象。'],
  apnsCertificate: [
    'The iOS certificate file is expired or disabled: {why}.',
    'iOS 证书已过期或停用：{why}。',
  ],
  noVendorProfile: [
    'There is no {vendor} profile named _default, and devices of that vendor need it.',
    '没有名为 _default 的 {vendor} 配置，而该厂商的设备需要它。',
  ],
  noNamedProfile: ['There is no {vendor} profile named {name}.', '没有名为 {name} 的 {vendor} 配置。'],
  audienceMoved: [
    'The audience has moved: {devices} devices now, {explained} in the dry run.',
    '受众已变化：现在 {devices} 台设备，试运行时 {explained} 台。',
  ],
  noDryRun: [
    'There was no dry run of this body: it goes to {devices} devices.',
    '该内容没有试运行过：会发送到 {devices} 台设备。',
  ],
  keyMismatch: [
    'Running processes cannot decrypt with the first key: {names}. Restart them with the same CARILLON_SECRET first.',
    '运行中的进程不能用第一个密钥解密：{names}。请先用相同的 CARILLON_SECRET 重启它们。',
  ],
  unknownMeantAll: [
    '"{member}" is no member of a push. Did you mean "{meant}"? Without where, channels or cql a push goes to everybody: send "where": {} if that is meant.',
    '推送没有成员“{member}”，是否指“{meant}”？没有 where、channels 或 cql 的推送会发送给所有设备：如果确实如此，请提供 "where": {}。',
  ],
  unknownAll: [
    '"{member}" is no member of a push. Without where, channels or cql a push goes to everybody: send "where": {} if that is meant.',
    '推送没有成员“{member}”。没有 where、channels 或 cql 的推送会发送给所有设备：如果确实如此，请提供 "where": {}。',
  ],
  unnamedAll: [
    'A member of the body is no member of a push. Without where, channels or cql a push goes to everybody: send "where": {} if that is meant.',
    '请求体含有推送没有的成员。没有 where、channels 或 cql 的推送会发送给所有设备：如果确实如此，请提供 "where": {}。',
  ],
  ignoredMeant: [
    '"{member}" is no member of a push and was ignored. Did you mean "{meant}"?',
    '推送没有成员“{member}”，已忽略。是否指“{meant}”？',
  ],
  ignored: ['"{member}" is no member of a push and was ignored.', '推送没有成员“{member}”，已忽略。'],
  ignoredUnnamed: [
    'A member of the body is no member of a push and was ignored.',
    '请求体含有推送没有的成员，已忽略。',
  ],
  ignoredMore: ['{n} more members are unknown and were ignored.', '另有 {n} 个未知成员，已忽略。'],
  required: ['{member} is required.', '缺少 {member}。'],
} as const satisfies Record<string, readonly [en: string, zh: string]>;
