// Generated from the OpenAPI description by `npm run docs`. Do not edit.
// Types of the admin API: parameters, body and reply of each operation, and its method and path.

export type AcceptedPush = {
  objectId: string;
  createdAt: string;
  warnings?: string[];
};

export type Acl = Record<string, {
  read?: boolean;
  write?: boolean;
}>;

export type App = {
  appId: string;
  name: string;
  edition: 'home' | 'international';
  plan: 'commercial' | 'development';
  appKey: string;
  masterKey: string;
  hookKey: string;
  options: AppOptions;
};

export type AppName = {
  appId: string;
  name: string;
};

export type AppOptions = {
  emailVerification: boolean;
  forbidUnverifiedEmailLogin: boolean;
  phoneVerification: boolean;
  forbidUnverifiedPhoneLogin: boolean;
  reloginAfterPasswordChange: boolean;
  generalSms: boolean;
  captchaForSms: boolean;
  hybridPush: boolean;
  forbidClientPush: boolean;
  allowUserQuery: boolean;
  allowStrictUserQuery: boolean;
  strictQueriesPerAddressPerHour: number;
  allowInstallationQuery: boolean;
  allowInstallationDelete: boolean;
  allowRoleCreate: boolean;
  maxRoles: number;
  rolesPerAddressPerHour: number;
  roleBytesPerAddressPerDay: number;
  roleBytes: number;
  pushCallsPerMinute: number;
  dailyRecipientCap: number;
  approvalAboveDevices: number | null;
  devicePushesPerDay: number | null;
  quietHours: string | null;
  defaultTimeZone: string;
  installationValidityDays: number;
  installationsPerAddressPerHour: number;
  installationBytesPerAddressPerDay: number;
  installationBytes: number;
  functionsUrl: string | null;
  functionsStagingUrl: string | null;
  functionsMasterKey: boolean;
  authPlatforms: Record<string, Record<string, unknown>>;
  checkedPlatformsOnly: boolean;
  trustUnverifiedNumbers: boolean;
  concealUsers: boolean;
  mailTemplates: Record<string, {
    subject?: string;
    html?: string;
    text?: string;
  }>;
  smsBalance: number | null;
  captchasPerAddressPerHour: number;
  signUpsPerAddressPerHour: number;
  signUpBytesPerAddressPerDay: number;
  userBytes: number;
  smsCountries: string[] | null;
  smsPerAddressPerHour: number;
  smsPerAppPerDay: number;
  reportOpens: boolean;
  receiptUrlGeneration: number;
  unknownOutcome: 'repeat' | 'fail';
};

export type AppReport = {
  from: string;
  to: string;
  days: ({
    day: string;
    pushes: number;
    sent: number;
    invalid_token: number;
    failed: number;
    expired: number;
    capped: number;
    dropped: number;
    delivered: number;
    clicked: number;
    received: number;
    opened: number;
    dismissed: number;
  })[];
  connectors: ({
    connector: string;
    pushes: number;
    sent: number;
    invalid_token: number;
    failed: number;
    expired: number;
    capped: number;
    dropped: number;
    delivered: number;
    clicked: number;
    received: number;
    opened: number;
    dismissed: number;
  })[];
  classes: ({
    class: string;
    pushes: number;
    sent: number;
    invalid_token: number;
    failed: number;
    expired: number;
    capped: number;
    dropped: number;
    delivered: number;
    clicked: number;
    received: number;
    opened: number;
    dismissed: number;
  })[];
  reasons: ({
    connector: string;
    reason: string;
    n: number;
    meaning: Meaning;
  })[];
  installations: ({
    day: string;
    platform: string;
    n: number;
  })[];
};

export type AppSummary = {
  appId: string;
  name: string;
  edition: 'home' | 'international';
  plan: 'commercial' | 'development';
  createdAt: string;
  devices: number;
  pushes7d: number;
};

export type ApprovedPush = {
  objectId: string;
  createdAt: string;
  updatedAt: string;
  notificationId: string;
  msg: Record<string, unknown>;
  where: Record<string, unknown>;
  liveActivity?: Record<string, unknown>;
  prod: 'dev' | 'prod';
  status: string;
  devices: number;
  successes: number;
  iosSuccesses?: number;
  fcmSuccesses?: number;
  hmsSuccesses?: number;
  miSuccesses?: number;
  meizuSuccesses?: number;
  oppoSuccesses?: number;
  vivoSuccesses?: number;
  honorSuccesses?: number;
  lcSuccesses?: number;
  webSuccesses?: number;
  delivered: number;
  clicked: number;
  events?: {
    received: number;
    opened: number;
    dismissed: number;
  };
  invalidTokens: number;
  outcomes: OutcomeTotals;
  repeats: number;
  displaced: number;
  quietWaits?: number;
  keptTokens?: ({
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    answers: number;
    invalid: number;
    kept: number;
    reason: string;
  })[];
  errors: string;
  'from-service': string;
  'push-time': string;
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  recall?: {
    objectId: string;
    status: 'in-queue' | 'paused' | 'done' | 'cancelled';
    isReplacement: boolean;
    createdAt: string;
    finishedAt: string | null;
    connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
      recalled?: number;
      replaced?: number;
      impossible?: number;
    }>>;
  };
  approval: {
    above: number | null;
    firstBy: string | null;
    firstAt: string | null;
    givenBy: string | null;
    givenAt: string | null;
    missing: number;
  } | null;
};

export type Audience = {
  devices: number;
  isLeast: boolean;
  connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', number>>;
  problems: Record<string, number>;
  sample: (Record<string, unknown>)[];
  clauses?: ({
    kind: 'where' | 'channels' | 'devices' | 'valid' | 'fresh' | 'rule';
    text: string;
    without: number | null;
  })[];
  tookMs: number;
  warning?: string;
  warningText?: {
    code: string;
    params: Record<string, unknown>;
  };
};

export type AuditEntry = {
  id: string;
  at: string;
  actor: {
    name: string;
    role: 'viewer' | 'sender' | 'operator' | 'owner';
    token: string | null;
    address: string;
  };
  action: string;
  appId: string | null;
  target: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  requestId: string;
};

export type Breaker = {
  id: string;
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  appId: string;
  profile: string;
  state: 'closed' | 'half-open' | 'open';
  forced: 'open' | 'closed' | null;
  since: string;
  nextProbeAt: string | null;
  lastFailure: {
    reason: string;
    meaning: Meaning;
    at: string;
  } | null;
};

export type BroadcastChannel = {
  channel: string;
  storage: 'none' | 'last';
  prod: 'dev' | 'prod';
  topic: string;
  createdAt: string | null;
};

export type CaptchaText = {
  code: string;
};

export type ChannelDryRun = {
  dryRun: boolean;
  prod: 'dev' | 'prod';
  topic: string;
  request: {
    method: string;
    url: string;
    body?: Record<string, unknown>;
  };
};

export type ConsoleSession = {
  id: string;
  name: string;
  role: 'viewer' | 'sender' | 'operator' | 'owner';
  apps: string[] | null;
  address: string;
  agent: string;
  createdAt: string;
  seenAt: string;
  expiresAt: string;
};

export type ConsoleToken = {
  id: string;
  name: string;
  role: 'viewer' | 'sender' | 'operator' | 'owner';
  apps: string[] | null;
  createdBy: string;
  createdAt: string;
  expiresAt: string | null;
  usedAt: string | null;
  isOidc: boolean;
  mail: string | null;
};

export type CreatedChannel = {
  channel: string;
};

export type CreatedConsoleToken = {
  id: string;
  name: string;
  role: 'viewer' | 'sender' | 'operator' | 'owner';
  apps: string[] | null;
  createdBy: string;
  createdAt: string;
  expiresAt: string | null;
  usedAt: string | null;
  isOidc: boolean;
  mail: string | null;
  token: string;
};

export type CurrentOperator = {
  name: string;
  role: 'viewer' | 'sender' | 'operator' | 'owner';
  apps: string[] | null;
  expiresAt: string | null;
  csrf: string | null;
};

export type DeletedCount = {
  deleted: number;
};

export type DeviceDetail = {
  installation: Installation;
  route: {
    connector: string;
    profile: string;
    problem?: string;
    problemMeaning?: Meaning;
  };
  isValid: boolean;
  isFresh: boolean;
  online: {
    since: string;
    node: string;
  } | null;
  inbox: number;
  badge: number | null;
  invalidTokenNotice: {
    connector: string;
    at: string;
    isSure: boolean;
  } | null;
};

export type DeviceExplanation = {
  installation: string;
  isMatched: boolean;
  clause: string | null;
  isValid: boolean | null;
  isFresh: boolean | null;
  updatedAt: string | null;
  route: {
    connector: string;
    profile: string;
    problem?: string;
    problemMeaning?: Meaning;
  };
  batch: {
    id: number;
    attempt: number;
    settled: boolean;
  } | null;
  language?: string | null;
  variables?: ({
    name: string;
    field: string;
    isDefault: boolean;
  })[];
  outcome: 'sent' | 'invalid_token' | 'failed' | 'expired' | 'capped' | 'dropped' | null;
  repeats: number;
  status: number | string | null;
  reason: string | null;
  meaning: Meaning | null;
  remedy: {
    code: 'invalidToken' | 'wrongApp' | 'noProfile' | 'noAddress' | 'subscriptionKey' | 'pushService' | 'credentials' | 'clock' | 'right' | 'category' | 'barred' | 'review' | 'testDevice' | 'region' | 'hybridPush' | 'privateAddress' | 'receipts' | 'request' | 'deviceCap' | 'quietHours' | 'localTime' | 'ownService' | 'message' | 'tooLarge' | 'appCap' | 'gatewayQuota' | 'tooFast' | 'unavailable' | 'unreachable' | 'unanswered' | 'expired' | 'condition' | 'cancelled' | 'notRecalled' | 'dropped' | 'userSetting' | 'vendorCode' | 'smsProvider';
  } | null;
  letter: 'waiting' | 'expired' | 'acknowledged' | 'gone' | null;
  gatewayFailure: {
    reason: string;
    meaning: Meaning;
    at: string;
  } | null;
  at: string | null;
  sentence: string;
  texts: ({
    code: string;
    params: Record<string, unknown>;
  })[];
};

export type DevicePush = {
  objectId: string;
  createdAt: string;
  state: 'scheduled' | 'queued' | 'sending' | 'paused' | 'done' | 'failed' | 'cancelled';
  isMatched: boolean;
  outcome: 'sent' | 'invalid_token' | 'failed' | 'expired' | 'capped' | 'dropped' | null;
  at: string | null;
  sentence: string;
  texts: ({
    code: string;
    params: Record<string, unknown>;
  })[];
};

export type DoctorFinding = {
  level: 'ok' | 'warn' | 'fail';
  subject: string;
  code: string;
  params: Record<string, unknown>;
};

export type Empty = object;

export type EndedSession = {
  endSessionUrl?: string;
};

export type ErasureReport = {
  dryRun: boolean;
  erased: Record<string, number>;
  kept: ({
    what: string;
    count: number | null;
    reason: string;
  })[];
};

export type FailedReceipt = {
  id: string;
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  status: number;
  reason: string;
  bytes: number;
  at: string;
};

export type FailureGroup = {
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  outcome: 'sent' | 'invalid_token' | 'failed' | 'expired' | 'capped' | 'dropped';
  status: number;
  reason: string;
  meaning: Meaning;
  n: number;
  remedy: {
    code: 'invalidToken' | 'wrongApp' | 'noProfile' | 'noAddress' | 'subscriptionKey' | 'pushService' | 'credentials' | 'clock' | 'right' | 'category' | 'barred' | 'review' | 'testDevice' | 'region' | 'hybridPush' | 'privateAddress' | 'receipts' | 'request' | 'deviceCap' | 'quietHours' | 'localTime' | 'ownService' | 'message' | 'tooLarge' | 'appCap' | 'gatewayQuota' | 'tooFast' | 'unavailable' | 'unreachable' | 'unanswered' | 'expired' | 'condition' | 'cancelled' | 'notRecalled' | 'dropped' | 'userSetting' | 'vendorCode' | 'smsProvider';
  };
};

export type Freeze = {
  appId: string | null;
  reason: string;
  by: string;
  since: string;
};

export type GatewayMessage = {
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  messageId: string;
  devices: number;
  at: string;
};

export type Installation = {
  deviceType: string;
  deviceToken?: string;
  installationId?: string;
  vendor?: string;
  registrationId?: string;
  subscription?: {
    endpoint: string;
    keys: {
      p256dh: string;
      auth: string;
    };
    keyId?: string;
  };
  deviceProfile?: string;
  apnsTopic?: string;
  pgwTopic?: string;
  apnsTeamId?: string;
  pgwTeamId?: string;
  channels?: string[];
  valid: boolean;
  timeZone?: string;
  badge?: number;
  objectId: string;
  createdAt: string;
  updatedAt: string;
  [member: string]: unknown;
};

export type ListedChannel = {
  channel: string;
  storage: 'none' | 'last' | null;
  createdAt: string | null;
};

export type ListedMessage = {
  kind: 'sms' | 'mail';
  to: string;
  text?: string;
  code?: string;
  link?: string;
  type: string;
  createdAt: string;
  id: string;
  state: 'waiting' | 'sent' | 'kept' | 'failed';
  attempts: number;
  reason: string | null;
  meaning?: Meaning;
  providerId: string | null;
  delivery: 'delivered' | 'undelivered' | null;
  deliveryReason: string | null;
  deliveryMeaning?: Meaning;
  deliveredAt: string | null;
  expiresAt: string;
};

export type ListedPush = {
  objectId: string;
  createdAt: string;
  updatedAt: string;
  notificationId: string;
  msg: Record<string, unknown>;
  where: Record<string, unknown>;
  liveActivity?: Record<string, unknown>;
  prod: 'dev' | 'prod';
  status: string;
  devices: number;
  successes: number;
  iosSuccesses?: number;
  fcmSuccesses?: number;
  hmsSuccesses?: number;
  miSuccesses?: number;
  meizuSuccesses?: number;
  oppoSuccesses?: number;
  vivoSuccesses?: number;
  honorSuccesses?: number;
  lcSuccesses?: number;
  webSuccesses?: number;
  delivered: number;
  clicked: number;
  events?: {
    received: number;
    opened: number;
    dismissed: number;
  };
  invalidTokens: number;
  outcomes: OutcomeTotals;
  repeats: number;
  displaced: number;
  quietWaits?: number;
  keptTokens?: ({
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    answers: number;
    invalid: number;
    kept: number;
    reason: string;
  })[];
  errors: string;
  'from-service': string;
  'push-time': string;
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  recall?: {
    objectId: string;
    status: 'in-queue' | 'paused' | 'done' | 'cancelled';
    isReplacement: boolean;
    createdAt: string;
    finishedAt: string | null;
    connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
      recalled?: number;
      replaced?: number;
      impossible?: number;
    }>>;
  };
  appId: string;
  state: 'scheduled' | 'queued' | 'sending' | 'paused' | 'done' | 'failed' | 'cancelled';
  flowControl: number | null;
  expiresAt: string;
  firstSentAt: string | null;
  finishedAt: string | null;
  createdBy: string | null;
  campaign: string | null;
  localTime: string | null;
  waitsForApproval: boolean;
  redriveOf: string | null;
  recallOf: string | null;
  redriven: number;
  recurring: {
    id: number;
    name: string;
  } | null;
};

export type LiveActivityForecast = {
  devices: number;
  connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
    devices: number;
    profiles: Record<string, number>;
    payload: unknown;
    payloadBytes: number | null;
    messageClass: {
      name: 'default' | 'im' | 'call' | 'account' | 'finance' | 'order' | 'express' | 'todo' | 'travel' | 'health' | 'device' | 'mail' | 'subscription' | 'news' | 'content' | 'social' | 'marketing' | null;
      dailyLimit: number | null;
      missing: string[];
    };
    notShown: ('image' | 'url' | 'buttons')[];
    languages?: Record<string, {
      payload: unknown;
      payloadBytes: number | null;
    }>;
    problem?: string;
    problems?: ({
      code: string;
      params: Record<string, unknown>;
    })[];
  }>>;
  limits: string[];
  estimatedSeconds: number | null;
  starts?: ({
    at: string;
    devices: number;
    isLate: boolean;
  })[];
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  quietHours?: {
    hours: string;
    waiting: number;
    expired: number;
    ends: ({
      at: string;
      devices: number;
    })[];
  };
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  pace: string;
  plan: string[];
  warning?: string;
  warnings?: string[];
  texts: {
    limits: ({
      code: string;
      params: Record<string, unknown>;
    })[];
    pace: {
      code: string;
      params: Record<string, unknown>;
    };
    warning: {
      code: string;
      params: Record<string, unknown>;
    } | null;
    warnings?: ({
      code: string;
      params: Record<string, unknown>;
    })[];
  };
  forecast: {
    scheduledPushes: number;
    scheduledIsLeast: boolean;
    cap: {
      day: string;
      zone: 'UTC';
      used: number;
      scheduled: number;
      draft: number;
      limit: number;
      over: number;
    };
    quotas: {
      day: string;
      zone: 'Asia/Shanghai';
      results: ({
        connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        profile: string;
        used: number;
        scheduled: number;
        draft: number;
        closedReason: string | null;
        closedMeaning: Meaning | null;
      })[];
    };
  };
  dryRun: boolean;
  withToken: number;
  withoutToken: number;
  liveActivity: Record<string, unknown> | null;
};

export type LoginLink = {
  code: string;
  url: string;
  expiresAt: string;
};

export type LoginMethods = {
  token: boolean;
  oidc: string | null;
};

export type Meaning = {
  code: string;
  params: Record<string, unknown>;
};

export type MessageForecast = {
  messages: number;
  expired: number;
  unreadable: number;
  next: string | null;
  causes: ({
    kind: 'sms' | 'mail';
    reason: string | null;
    n: number;
    meaning?: Meaning;
  })[];
};

export type Meta = {
  version: string;
  build: string | null;
  publicUrl: string;
  tryUrl: string | null;
  address: string;
  now: string;
  connectors: ({
    id: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    wire: string[];
    dataKeys: string[];
    credentials: unknown;
    help: {
      source: string;
      members: Record<string, string>;
      example: unknown;
    } | null;
    limits: Record<string, number>;
    can: Record<string, boolean>;
    tokenField: string;
  })[];
  options: unknown;
  defaults: {
    commercial: unknown;
    development: unknown;
  };
  ownerOptions: string[];
  push: unknown;
  dataKeys: string[];
  roles: string[];
  outcomes: string[];
  states: string[];
};

export type MoveInState = {
  devices: {
    imported: number;
    seen: number;
    registered: number;
  };
  users: number;
  countsAreLeast: boolean;
  days: ({
    day: string;
    moved: number;
    registered: number;
  })[];
  gateways: ({
    connector: string;
    profile: string;
    devices: number;
    problem: string | null;
  })[];
  gatewaysAreLeast: boolean;
  lastImport: {
    classes: Record<string, {
      read: number;
      imported: number;
      alreadyThere: number;
      newerInFile: number;
      refused: number;
    }>;
    refused: number;
    seconds: number;
    isFinished: boolean;
    at: string;
  } | null;
  steps: ({
    id: string;
    state: 'done' | 'todo' | 'check';
    code: string;
    params: Record<string, string | number>;
  })[];
};

export type MovedAudience = {
  code: 409;
  error: string;
  devices: number;
  explained: number | null;
  digest: string;
};

export type OtherPerson = {
  code: 409;
  error: string;
  current: {
    name: string;
    role: 'viewer' | 'sender' | 'operator' | 'owner';
  };
  asked: {
    name: string;
    role: 'viewer' | 'sender' | 'operator' | 'owner';
  };
};

export type OutboxMessage = {
  kind: 'sms' | 'mail';
  to: string;
  text: string;
  code?: string;
  link?: string;
  type: string;
  createdAt: string;
};

export type OutcomeTotals = Partial<Record<'sent' | 'invalid_token' | 'failed' | 'expired' | 'capped' | 'dropped', number>>;

export type Overview = {
  running: ListedPush[];
  scheduled: number;
  today: {
    day: string;
    recipients: number;
    cap: number | null;
    calls: number;
    peakCallsPerMinute: number;
  };
  waitingApproval: ListedPush[];
  outcomes24h: OutcomeTotals;
  unacknowledged24h: number;
  outcomesAreLeast: boolean;
  breakersOpen: Breaker[];
  queues: QueueState[];
  profilesExpiring: ({
    appId: string;
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    expiresAt: string | null;
    problems: string[];
    meanings: Meaning[];
  })[];
  webhooks: ({
    appId: string;
    name: string;
    offReason: 'gone' | 'failing' | null;
    at: string;
  })[];
  findings: ({
    appId: string;
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    expiresAt: string | null;
    problems: string[];
    meanings: Meaning[];
  })[];
  setup: {
    hasProfile: boolean;
    hasDevice: boolean;
    hasPush: boolean;
  } | null;
};

export type PersonExport = {
  exportedAt: string;
  app: {
    appId: string;
    name: string;
  };
  user: UserPart;
  hasPassword: boolean;
  session: string;
  thirdPartyAccounts: ({
    platform: string;
    uid: string;
    secrets: string;
  })[];
  installations: Installation[];
  receipts: (Record<string, unknown>)[];
  pushFailures: (Record<string, unknown>)[];
  pushesPerDay: (Record<string, unknown>)[];
  invalidTokenNotices: (Record<string, unknown>)[];
  liveActivityTokens: (Record<string, unknown>)[];
  channelMessages: (Record<string, unknown>)[];
  messages: (Record<string, unknown>)[];
  smsSends: (Record<string, unknown>)[];
  verificationCodes: (Record<string, unknown>)[];
  links: (Record<string, unknown>)[];
  loginLocks: (Record<string, unknown>)[];
  identities: (Record<string, unknown>)[];
  roles: (Record<string, unknown>)[];
  pushes: (Record<string, unknown>)[];
  recurringPushes: (Record<string, unknown>)[];
  savedItems: (Record<string, unknown>)[];
  webhookDeliveries: (Record<string, unknown>)[];
  audit: (Record<string, unknown>)[];
  isComplete: boolean;
};

export type ProfileCheck = {
  ok: boolean;
  gave: 'token' | 'connection' | null;
  tookMs: number;
  reason: string | null;
  meaning: Meaning | null;
  sentence: string;
  remedy: {
    code: 'invalidToken' | 'wrongApp' | 'noProfile' | 'noAddress' | 'subscriptionKey' | 'pushService' | 'credentials' | 'clock' | 'right' | 'category' | 'barred' | 'review' | 'testDevice' | 'region' | 'hybridPush' | 'privateAddress' | 'receipts' | 'request' | 'deviceCap' | 'quietHours' | 'localTime' | 'ownService' | 'message' | 'tooLarge' | 'appCap' | 'gatewayQuota' | 'tooFast' | 'unavailable' | 'unreachable' | 'unanswered' | 'expired' | 'condition' | 'cancelled' | 'notRecalled' | 'dropped' | 'userSetting' | 'vendorCode' | 'smsProvider';
  } | null;
};

export type ProfileDetail = {
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  name: string;
  createdAt: string;
  updatedAt: string;
  messageClasses?: Record<string, Record<string, unknown>>;
  kind: string;
  members: Record<string, unknown>;
  secrets: Record<string, {
    sha256: string;
  }>;
  notAfter: string | null;
  devices: number;
  devicesAreLeast?: boolean;
  findings: string[];
  meanings: Meaning[];
  rotation: 'staged' | 'checked' | 'canary' | 'promoted' | 'rolled_back' | null;
  receiptUrl: string | null;
};

export type ProfileRotation = {
  connector: string;
  name: string;
  state: 'staged' | 'checked' | 'canary' | 'promoted' | 'rolled_back';
  stagedAt: string;
  changedAt: string;
  reason: string | null;
  detail: string | null;
  mayRollBack: boolean;
  batches: number;
  batchesSeen: number;
  asked: number;
  accepted: number;
  refused: number;
  worse: number;
  enough: number;
};

export type PushDetail = {
  objectId: string;
  createdAt: string;
  updatedAt: string;
  notificationId: string;
  msg: Record<string, unknown>;
  where: Record<string, unknown>;
  liveActivity?: Record<string, unknown>;
  prod: 'dev' | 'prod';
  status: string;
  devices: number;
  successes: number;
  iosSuccesses?: number;
  fcmSuccesses?: number;
  hmsSuccesses?: number;
  miSuccesses?: number;
  meizuSuccesses?: number;
  oppoSuccesses?: number;
  vivoSuccesses?: number;
  honorSuccesses?: number;
  lcSuccesses?: number;
  webSuccesses?: number;
  delivered: number;
  clicked: number;
  events?: {
    received: number;
    opened: number;
    dismissed: number;
  };
  invalidTokens: number;
  outcomes: OutcomeTotals;
  repeats: number;
  displaced: number;
  quietWaits?: number;
  keptTokens?: ({
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    answers: number;
    invalid: number;
    kept: number;
    reason: string;
  })[];
  errors: string;
  'from-service': string;
  'push-time': string;
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  recall?: {
    objectId: string;
    status: 'in-queue' | 'paused' | 'done' | 'cancelled';
    isReplacement: boolean;
    createdAt: string;
    finishedAt: string | null;
    connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
      recalled?: number;
      replaced?: number;
      impossible?: number;
    }>>;
  };
  appId: string;
  state: 'scheduled' | 'queued' | 'sending' | 'paused' | 'done' | 'failed' | 'cancelled';
  flowControl: number | null;
  expiresAt: string;
  firstSentAt: string | null;
  finishedAt: string | null;
  createdBy: string | null;
  campaign: string | null;
  localTime: string | null;
  waitsForApproval: boolean;
  redriveOf: string | null;
  recallOf: string | null;
  redriven: number;
  recurring: {
    id: number;
    name: string;
  } | null;
  isPlanned: boolean;
  acked: number;
  request: Record<string, unknown>;
  halts: Record<string, string>;
  approval: {
    above: number | null;
    firstBy: string | null;
    firstAt: string | null;
    givenBy: string | null;
    givenAt: string | null;
    missing: number;
  } | null;
  nextStart: string | null;
  redrives: string[];
  groupOf: string[];
};

export type PushFailure = {
  objectId: string | null;
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  outcome: 'sent' | 'invalid_token' | 'failed' | 'expired' | 'capped' | 'dropped';
  status: number;
  reason: string;
  meaning: Meaning;
  at: string;
};

export type PushForecast = {
  devices: number;
  connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
    devices: number;
    profiles: Record<string, number>;
    payload: unknown;
    payloadBytes: number | null;
    messageClass: {
      name: 'default' | 'im' | 'call' | 'account' | 'finance' | 'order' | 'express' | 'todo' | 'travel' | 'health' | 'device' | 'mail' | 'subscription' | 'news' | 'content' | 'social' | 'marketing' | null;
      dailyLimit: number | null;
      missing: string[];
    };
    notShown: ('image' | 'url' | 'buttons')[];
    languages?: Record<string, {
      payload: unknown;
      payloadBytes: number | null;
    }>;
    problem?: string;
    problems?: ({
      code: string;
      params: Record<string, unknown>;
    })[];
  }>>;
  limits: string[];
  estimatedSeconds: number | null;
  starts?: ({
    at: string;
    devices: number;
    isLate: boolean;
  })[];
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  quietHours?: {
    hours: string;
    waiting: number;
    expired: number;
    ends: ({
      at: string;
      devices: number;
    })[];
  };
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  pace: string;
  plan: string[];
  warning?: string;
  warnings?: string[];
  texts: {
    limits: ({
      code: string;
      params: Record<string, unknown>;
    })[];
    pace: {
      code: string;
      params: Record<string, unknown>;
    };
    warning: {
      code: string;
      params: Record<string, unknown>;
    } | null;
    warnings?: ({
      code: string;
      params: Record<string, unknown>;
    })[];
  };
  forecast: {
    scheduledPushes: number;
    scheduledIsLeast: boolean;
    cap: {
      day: string;
      zone: 'UTC';
      used: number;
      scheduled: number;
      draft: number;
      limit: number;
      over: number;
    };
    quotas: {
      day: string;
      zone: 'Asia/Shanghai';
      results: ({
        connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        profile: string;
        used: number;
        scheduled: number;
        draft: number;
        closedReason: string | null;
        closedMeaning: Meaning | null;
      })[];
    };
  };
  digest: string;
};

export type PushProfile = {
  connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
  name: string;
  createdAt: string;
  updatedAt: string;
  messageClasses?: Record<string, Record<string, unknown>>;
};

export type PushProgress = {
  status: string;
  devices: number;
  planned: boolean;
  outcomes: OutcomeTotals;
  connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', OutcomeTotals>>;
  open: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', number>>;
  repeats: number;
  delivered: number;
  clicked: number;
  events?: {
    received: number;
    opened: number;
    dismissed: number;
  };
  acked: number;
  perSecond: number;
  secondsLeft: number | null;
};

export type PushRecord = {
  objectId: string;
  createdAt: string;
  updatedAt: string;
  notificationId: string;
  msg: Record<string, unknown>;
  where: Record<string, unknown>;
  liveActivity?: Record<string, unknown>;
  prod: 'dev' | 'prod';
  status: string;
  devices: number;
  successes: number;
  iosSuccesses?: number;
  fcmSuccesses?: number;
  hmsSuccesses?: number;
  miSuccesses?: number;
  meizuSuccesses?: number;
  oppoSuccesses?: number;
  vivoSuccesses?: number;
  honorSuccesses?: number;
  lcSuccesses?: number;
  webSuccesses?: number;
  delivered: number;
  clicked: number;
  events?: {
    received: number;
    opened: number;
    dismissed: number;
  };
  invalidTokens: number;
  outcomes: OutcomeTotals;
  repeats: number;
  displaced: number;
  quietWaits?: number;
  keptTokens?: ({
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    answers: number;
    invalid: number;
    kept: number;
    reason: string;
  })[];
  errors: string;
  'from-service': string;
  'push-time': string;
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  recall?: {
    objectId: string;
    status: 'in-queue' | 'paused' | 'done' | 'cancelled';
    isReplacement: boolean;
    createdAt: string;
    finishedAt: string | null;
    connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
      recalled?: number;
      replaced?: number;
      impossible?: number;
    }>>;
  };
};

export type PushTemplate = {
  name: string;
  updatedAt: string;
  updatedBy: string;
  body: Record<string, unknown>;
};

export type PushTimeline = {
  from: string;
  stepMs: number;
  connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
    sent: number[];
    other: number[];
  }>>;
};

export type QueueState = {
  queue: string;
  ready: number;
  waiting: number;
  active: number;
  oldestSeconds: number;
};

export type Quotas = {
  day: string;
  zone: 'Asia/Shanghai';
  results: ({
    connector: string;
    profile: string;
    class: string;
    used: number;
    requests: number;
    limit: number | null;
    closedReason: string | null;
    closedMeaning: Meaning | null;
    rate: {
      perSecond: number;
      counts: 'recipients' | 'requests';
    } | null;
    forecast: number | null;
  })[];
  app: {
    day: string;
    zone: 'UTC';
    used: number;
    limit: number;
    forecast: number | null;
  };
  scheduled: {
    pushes: number;
    counted: number;
  } | null;
};

export type RecurringPush = {
  id: number;
  name: string;
  expression: string;
  timeZone: string;
  startsAt: string | null;
  endsAt: string | null;
  isEnabled: boolean;
  body: Record<string, unknown>;
  nextAt: string | null;
  lastAt: string | null;
  lastPush: string | null;
  starts: number;
  missed: number;
  heldBack: number;
  createdBy: string;
  createdAt: string;
  changedBy: string;
  changedAt: string;
};

export type RecurringTimes = {
  times: ({
    at: string;
    local: string;
  })[];
};

export type RedriveForecast = {
  devices: number;
  failures: {
    selected: number;
    redriven: number;
    unsure: number;
    gone: number;
    notKept: number;
  };
  causes: ({
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    outcome: 'failed' | 'expired' | 'capped';
    status: number;
    reason: string;
    n: number;
    meaning: Meaning;
  })[];
  connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
    devices: number;
    profiles: Record<string, number>;
    payload: unknown;
    payloadBytes: number | null;
    messageClass: {
      name: 'default' | 'im' | 'call' | 'account' | 'finance' | 'order' | 'express' | 'todo' | 'travel' | 'health' | 'device' | 'mail' | 'subscription' | 'news' | 'content' | 'social' | 'marketing' | null;
      dailyLimit: number | null;
      missing: string[];
    };
    notShown: ('image' | 'url' | 'buttons')[];
    languages?: Record<string, {
      payload: unknown;
      payloadBytes: number | null;
    }>;
    problem?: string;
    problems?: ({
      code: string;
      params: Record<string, unknown>;
    })[];
  }>>;
  limits: string[];
  estimatedSeconds: number | null;
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  quietHours?: {
    hours: string;
    waiting: number;
    expired: number;
    ends: ({
      at: string;
      devices: number;
    })[];
  };
  pace: string;
  texts: {
    limits: ({
      code: string;
      params: Record<string, unknown>;
    })[];
    pace: {
      code: string;
      params: Record<string, unknown>;
    };
  };
  forecast: {
    scheduledPushes: number;
    scheduledIsLeast: boolean;
    cap: {
      day: string;
      zone: 'UTC';
      used: number;
      scheduled: number;
      draft: number;
      limit: number;
      over: number;
    };
    quotas: {
      day: string;
      zone: 'Asia/Shanghai';
      results: ({
        connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        profile: string;
        used: number;
        scheduled: number;
        draft: number;
        closedReason: string | null;
        closedMeaning: Meaning | null;
      })[];
    };
  };
};

export type RedrivenMessages = {
  messages: number;
  expired: number;
  unreadable: number;
  next: string | null;
};

export type RedrivenReceipts = {
  processed: number;
  refused: number;
  next: string | null;
};

export type RotatedKey = {
  key: 'appKey' | 'masterKey' | 'hookKey';
  value: string;
  oldValidUntil: string | null;
};

export type SampledField = {
  name: string;
  types: string[];
  values: ({
    value: string | number | boolean;
    share: number;
  })[];
  isIndexed: boolean;
};

export type SavedAudience = {
  name: string;
  updatedAt: string;
  updatedBy: string;
  where: unknown;
};

export type ScheduledEntry = {
  objectId: string;
  createdAt: string;
  updatedAt: string;
  notificationId: string;
  msg: Record<string, unknown>;
  where: Record<string, unknown>;
  liveActivity?: Record<string, unknown>;
  prod: 'dev' | 'prod';
  status: string;
  devices: number;
  successes: number;
  iosSuccesses?: number;
  fcmSuccesses?: number;
  hmsSuccesses?: number;
  miSuccesses?: number;
  meizuSuccesses?: number;
  oppoSuccesses?: number;
  vivoSuccesses?: number;
  honorSuccesses?: number;
  lcSuccesses?: number;
  webSuccesses?: number;
  delivered: number;
  clicked: number;
  events?: {
    received: number;
    opened: number;
    dismissed: number;
  };
  invalidTokens: number;
  outcomes: OutcomeTotals;
  repeats: number;
  displaced: number;
  quietWaits?: number;
  keptTokens?: ({
    connector: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
    profile: string;
    answers: number;
    invalid: number;
    kept: number;
    reason: string;
  })[];
  errors: string;
  'from-service': string;
  'push-time': string;
  languages?: ({
    language: string | null;
    devices: number;
    fallback: number;
  })[];
  variables?: ({
    name: string;
    devices: number;
    fallback: number;
  })[];
  recall?: {
    objectId: string;
    status: 'in-queue' | 'paused' | 'done' | 'cancelled';
    isReplacement: boolean;
    createdAt: string;
    finishedAt: string | null;
    connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
      recalled?: number;
      replaced?: number;
      impossible?: number;
    }>>;
  };
  appId: string;
  state: 'scheduled' | 'queued' | 'sending' | 'paused' | 'done' | 'failed' | 'cancelled';
  flowControl: number | null;
  expiresAt: string;
  firstSentAt: string | null;
  finishedAt: string | null;
  createdBy: string | null;
  campaign: string | null;
  localTime: string | null;
  waitsForApproval: boolean;
  redriveOf: string | null;
  recallOf: string | null;
  redriven: number;
  recurring: {
    id: number;
    name: string;
  } | null;
  id: number;
};

export type SearchHit = {
  kind: 'app' | 'push' | 'installation' | 'user';
  appId: string;
  id: string;
  title: string;
};

export type SecretState = {
  keys: ({
    id: string;
    isFirst: boolean;
    values: Record<string, number> | null;
    mayBeRemoved: boolean;
  })[];
  other: Record<string, number> | null;
  countedAt: string | null;
  left: number | null;
  rotation: {
    state: 'running' | 'done';
    requestedAt: string;
    finishedAt: string | null;
    pass: number;
    expected: number;
    changed: number;
    unreadable: Record<string, number>;
  } | null;
  mismatches: ({
    kind: 'api' | 'dispatcher';
    host: string;
    pid: number;
    problem: 'cannotRead' | 'encryptsOtherwise' | 'unknown';
  })[];
};

export type SeenProcess = {
  id: string;
  kind: 'api' | 'dispatcher';
  host: string;
  pid: number;
  version: string;
  threads: number;
  connections: number;
  startedAt: string;
  seenAt: string;
};

export type SentPush = {
  objectId: string;
  createdAt: string;
  warnings?: string[];
  status: string;
};

export type ShownApp = {
  appId: string;
  name: string;
  edition: 'home' | 'international';
  plan: 'commercial' | 'development';
  appKey?: string;
  masterKey?: string;
  hookKey?: string;
  options: AppOptions;
};

export type ShownKey = {
  key: 'appKey' | 'masterKey' | 'hookKey';
  value: string;
};

export type SmsSignature = {
  name: string;
  status: 'approved' | 'pending';
  createdAt: string;
  updatedAt: string;
};

export type SmsState = {
  balance: number | null;
  free: {
    used: number;
    limit: number;
  };
  day: {
    used: number;
    limit: number;
  };
  suspended: ({
    prefix: string;
    openedAt: string;
    openUntil: string;
  })[];
  conversion: ({
    prefix: string;
    sent: number;
    used: number;
  })[];
};

export type SmsTemplate = {
  name: string;
  status: 'approved' | 'pending';
  createdAt: string;
  updatedAt: string;
  type: 'verification' | 'notification';
  text: string;
  providers?: {
    aliyun?: {
      code: string;
      params?: Record<string, string>;
    };
    tencent?: {
      id: string;
      params?: string[];
    };
  };
  active: {
    type: 'verification' | 'notification';
    text: string;
    providers?: {
      aliyun?: {
        code: string;
        params?: Record<string, string>;
      };
      tencent?: {
        id: string;
        params?: string[];
      };
    };
  } | null;
};

export type TestDevice = {
  name: string;
  updatedAt: string;
  updatedBy: string;
  installation: string;
};

export type UndeliveredPush = {
  objectId: string;
  state: 'scheduled' | 'queued' | 'sending' | 'paused' | 'done' | 'failed' | 'cancelled';
  campaign: string | null;
  msg: Record<string, unknown>;
  pushTime: string;
  finishedAt: string | null;
  failed: number;
  expired: number;
  capped: number;
  redriven: number;
};

export type UsageReport = {
  day: string;
  calls: number;
  peakCallsPerMinute: number;
  recipients: number;
  fees: {
    calls: number;
    recipients: number;
    total: number;
    currency: 'CNY' | 'USD';
  };
};

export type UserDetail = {
  user: UserPart;
  identities: ({
    platform: string;
    uid: string;
  })[];
  hasPassword: boolean;
  lock: {
    failures: number;
    lockedUntil: string | null;
  };
};

export type UserPart = {
  username?: string;
  email?: string;
  emailVerified?: boolean | null;
  mobilePhoneNumber?: string;
  mobilePhoneVerified?: boolean;
  authData?: Record<string, unknown>;
  ACL?: Acl;
  objectId?: string;
  createdAt?: string;
  updatedAt?: string;
  [member: string]: unknown;
};

export type WaitingJob = {
  id: string;
  state: 'created' | 'retry' | 'active';
  tries: number;
  appId: string | null;
  pushId: string | null;
  batchId: string | null;
  messageId: string | null;
  createdAt: string;
  startAfter: string;
  startedAt: string | null;
};

export type Webhook = {
  name: string;
  url: string;
  events: ('push.accepted' | 'push.done' | 'push.cancelled' | 'push.failed' | 'push.waiting_approval' | 'recipients.outcome' | 'recipients.receipt' | 'recipients.opened' | 'installation.invalid' | 'message.failed' | 'breaker.opened' | 'breaker.closed' | 'credentials.ending' | 'quota.near' | 'freeze.started' | 'freeze.ended')[];
  format: 'standard' | 'feishu' | 'dingtalk' | 'wecom' | 'slack';
  language: 'en' | 'zh' | null;
  isEnabled: boolean;
  offReason: 'gone' | 'failing' | null;
  offAt: string | null;
  failures: number;
  failingSince: string | null;
  waiting: number;
  oldestWaitingAt: string | null;
  dropped: number;
  droppedAt: string | null;
  previousSecretUntil: string | null;
  createdAt: string;
  updatedAt: string;
  secret?: string;
};

export type WebhookDelivery = {
  id: string;
  type: string;
  app: string | null;
  state: 'waiting' | 'delivered' | 'failed';
  attempts: number;
  status: number | null;
  reason: string | null;
  response: string | null;
  occurredAt: string;
  attemptedAt: string | null;
  nextAttemptAt: string | null;
};

export interface Operations {
  /** Creates an app, or imports an app with its id and keys. Returns 409 if the id exists. */
  createApp: {
    input: {
      body: {
        name: string;
        edition?: 'home' | 'international';
        plan?: 'commercial' | 'development';
        options?: {
          emailVerification?: boolean;
          forbidUnverifiedEmailLogin?: boolean;
          phoneVerification?: boolean;
          forbidUnverifiedPhoneLogin?: boolean;
          reloginAfterPasswordChange?: boolean;
          generalSms?: boolean;
          captchaForSms?: boolean;
          hybridPush?: boolean;
          forbidClientPush?: boolean;
          allowUserQuery?: boolean;
          allowStrictUserQuery?: boolean;
          strictQueriesPerAddressPerHour?: number;
          allowInstallationQuery?: boolean;
          allowInstallationDelete?: boolean;
          allowRoleCreate?: boolean;
          maxRoles?: number;
          rolesPerAddressPerHour?: number;
          roleBytesPerAddressPerDay?: number;
          roleBytes?: number;
          pushCallsPerMinute?: number;
          dailyRecipientCap?: number;
          approvalAboveDevices?: number | null;
          devicePushesPerDay?: number | null;
          quietHours?: string | null;
          defaultTimeZone?: string;
          installationValidityDays?: number;
          installationsPerAddressPerHour?: number;
          installationBytesPerAddressPerDay?: number;
          installationBytes?: number;
          functionsUrl?: string | null;
          functionsStagingUrl?: string | null;
          functionsMasterKey?: boolean;
          authPlatforms?: Record<string, Record<string, unknown>>;
          checkedPlatformsOnly?: boolean;
          trustUnverifiedNumbers?: boolean;
          concealUsers?: boolean;
          mailTemplates?: Record<string, {
            subject?: string;
            html?: string;
            text?: string;
          }>;
          smsBalance?: number | null;
          captchasPerAddressPerHour?: number;
          signUpsPerAddressPerHour?: number;
          signUpBytesPerAddressPerDay?: number;
          userBytes?: number;
          smsCountries?: string[] | null;
          smsPerAddressPerHour?: number;
          smsPerAppPerDay?: number;
          reportOpens?: boolean;
          receiptUrlGeneration?: number;
          unknownOutcome?: 'repeat' | 'fail';
        };
        appId?: string;
        appKey?: string;
        masterKey?: string;
        hookKey?: string;
      };
    };
    reply: App;
  };
  /**
   * Lists the apps with their options, and with their keys for owners. With a `view`, in pages,
   * without keys and options.
   */
  listApps: {
    input: {
      query?: {
        view?: 'list' | 'names';
        q?: string;
        ids?: string;
        sort?: 'id' | 'name' | 'activity';
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: ShownApp[];
    } | {
      results: AppSummary[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    } | {
      results: AppName[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns an app with its options. Owners also get its keys, unless `view=options`. */
  getApp: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        view?: 'options';
      };
    };
    reply: ShownApp;
  };
  /** Changes the name or options of an app. */
  updateApp: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        view?: 'options';
      };
      body?: {
        name?: string;
        options?: {
          emailVerification?: boolean;
          forbidUnverifiedEmailLogin?: boolean;
          phoneVerification?: boolean;
          forbidUnverifiedPhoneLogin?: boolean;
          reloginAfterPasswordChange?: boolean;
          generalSms?: boolean;
          captchaForSms?: boolean;
          hybridPush?: boolean;
          forbidClientPush?: boolean;
          allowUserQuery?: boolean;
          allowStrictUserQuery?: boolean;
          strictQueriesPerAddressPerHour?: number;
          allowInstallationQuery?: boolean;
          allowInstallationDelete?: boolean;
          allowRoleCreate?: boolean;
          maxRoles?: number;
          rolesPerAddressPerHour?: number;
          roleBytesPerAddressPerDay?: number;
          roleBytes?: number;
          pushCallsPerMinute?: number;
          dailyRecipientCap?: number;
          approvalAboveDevices?: number | null;
          devicePushesPerDay?: number | null;
          quietHours?: string | null;
          defaultTimeZone?: string;
          installationValidityDays?: number;
          installationsPerAddressPerHour?: number;
          installationBytesPerAddressPerDay?: number;
          installationBytes?: number;
          functionsUrl?: string | null;
          functionsStagingUrl?: string | null;
          functionsMasterKey?: boolean;
          authPlatforms?: Record<string, Record<string, unknown>>;
          checkedPlatformsOnly?: boolean;
          trustUnverifiedNumbers?: boolean;
          concealUsers?: boolean;
          mailTemplates?: Record<string, {
            subject?: string;
            html?: string;
            text?: string;
          }>;
          smsBalance?: number | null;
          captchasPerAddressPerHour?: number;
          signUpsPerAddressPerHour?: number;
          signUpBytesPerAddressPerDay?: number;
          userBytes?: number;
          smsCountries?: string[] | null;
          smsPerAddressPerHour?: number;
          smsPerAppPerDay?: number;
          reportOpens?: boolean;
          receiptUrlGeneration?: number;
          unknownOutcome?: 'repeat' | 'fail';
        };
      };
    };
    reply: ShownApp;
  };
  /** Deletes an app with all its data. `appId` in the body must repeat its id. */
  deleteApp: {
    input: {
      path: {
        appId: string;
      };
      body: {
        appId: string;
      };
    };
    reply: Empty;
  };
  /** Returns the progress of an app’s move: steps, devices by day, gateways, the last import. */
  getMoveIn: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: MoveInState;
  };
  /** Returns the usage and fees of an app on one or several days (UTC). */
  getUsage: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        day?: string;
        from?: string;
        to?: string;
      };
    };
    reply: UsageReport | {
      results: UsageReport[];
    };
  };
  /** Returns totals of an app by day (UTC), at most 731 days, computed every 15 minutes. */
  getReport: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        from?: string;
        to?: string;
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        class?: string;
      };
    };
    reply: AppReport;
  };
  /** Returns one key of an app (`appKey`, `masterKey`, `hookKey`). */
  getKey: {
    input: {
      path: {
        appId: string;
        key: 'appKey' | 'masterKey' | 'hookKey';
      };
    };
    reply: ShownKey;
  };
  /**
   * Replaces a key of an app (`appKey`, `masterKey`, `hookKey`). The old key stays valid for some
   * time.
   */
  rotateKey: {
    input: {
      path: {
        appId: string;
        key: 'appKey' | 'masterKey' | 'hookKey';
      };
      body?: {
        graceSeconds?: number;
      };
    };
    reply: RotatedKey;
  };
  /**
   * Creates or replaces a push profile. The body contains the credentials of the connector. The
   * reply contains no secrets.
   */
  putProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
      body?: Record<string, unknown>;
    };
    reply: PushProfile;
  };
  /**
   * Returns a push profile with its ids and settings, fingerprints of its secrets and its problems.
   */
  getProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
    };
    reply: ProfileDetail;
  };
  /** Deletes a push profile. */
  deleteProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /** Requests an access token or a connection from the gateway, within 8 s. Sends no push. */
  checkProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
    };
    reply: ProfileCheck;
  };
  /** Lists the push profiles of an app without secrets. Operators can use `view=details`. */
  listProfiles: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        view?: 'details';
      };
    };
    reply: {
      results: PushProfile[];
    } | {
      results: ProfileDetail[];
    };
  };
  /**
   * Returns an app’s usage of its gateways on a day in China, with a forecast of its scheduled
   * pushes.
   */
  getQuotas: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        day?: string;
      };
    };
    reply: Quotas;
  };
  /** Lists the circuit breakers of all dispatchers with their state and last failure. */
  listBreakers: {
    input: {};
    reply: {
      results: Breaker[];
    };
  };
  /**
   * Forces a circuit breaker open on every dispatcher: the gateway gets no requests until it is
   * released.
   */
  openBreaker: {
    input: {
      path: {
        id: string;
      };
    };
    reply: Breaker;
  };
  /**
   * Forces a circuit breaker closed on every dispatcher: requests are sent whatever the gateway
   * replies.
   */
  closeBreaker: {
    input: {
      path: {
        id: string;
      };
    };
    reply: Breaker;
  };
  /** Ends a forced state: the breaker follows the responses of the gateway again. */
  releaseBreaker: {
    input: {
      path: {
        id: string;
      };
    };
    reply: Breaker;
  };
  /**
   * Stages a second version of the credentials, checks it at the gateway, and tries it on 1 % of
   * the batches of pushes.
   */
  stageProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
      query?: {
        hold?: '0' | '1' | 'true' | 'false' | '';
      };
      body?: Record<string, unknown>;
    };
    reply: ProfileRotation;
  };
  /** Shows the last rotation of the credentials of a profile, without credentials. */
  getProfileRotation: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
    };
    reply: ProfileRotation;
  };
  /** Makes the checked candidate the current version. The replaced version is kept for 7 days. */
  promoteProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
    };
    reply: ProfileRotation;
  };
  /** Drops the candidate, or restores the version before the last promotion. */
  rollBackProfile: {
    input: {
      path: {
        appId: string;
        connector: string;
        name: string;
      };
    };
    reply: ProfileRotation;
  };
  /**
   * Lists receipt calls of gateways that could not be processed, newest first, each with the
   * reason.
   */
  listFailedReceipts: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
      };
    };
    reply: {
      results: FailedReceipt[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Counts the calls that could be processed with the current credentials. Changes nothing. */
  explainReceiptRedrive: {
    input: {
      path: {
        appId: string;
      };
      body?: {
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        cursor?: string;
      };
    };
    reply: RedrivenReceipts;
  };
  /**
   * Processes calls again with the current credentials, oldest first, at most 50. Calls that are
   * refused again stay.
   */
  redriveReceipts: {
    input: {
      path: {
        appId: string;
      };
      body?: {
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        cursor?: string;
      };
    };
    reply: RedrivenReceipts;
  };
  /**
   * Returns what a push would do: audience, payloads, limits and time. Sends nothing. The body is
   * the same as for `POST /1.1/push`.
   */
  explainPush: {
    input: {
      path: {
        appId: string;
      };
      body: {
        data: Record<string, unknown>;
        languages?: Record<string, Record<string, unknown>> | null;
        variables?: Record<string, {
          field: string;
          default: string;
        }> | null;
        notification_id?: string | null;
        campaign?: string | null;
        req_id?: string | null;
        expiration_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expiration_interval?: number | string | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        kind?: 'marketing' | 'transactional' | null;
        class?: 'im' | 'call' | 'account' | 'finance' | 'order' | 'express' | 'todo' | 'travel' | 'health' | 'device' | 'mail' | 'subscription' | 'news' | 'content' | 'social' | 'marketing' | null;
        device_cap?: number | null;
        quiet_hours?: string | null;
        lastActiveDeviceOnly?: boolean | null;
        _notificationChannel?: string | null;
        where?: Record<string, unknown> | unknown[] | string;
        cql?: string;
        channels?: string | string[] | null;
        push_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        push_time_local?: boolean | null;
        default_time_zone?: string | null;
        flow_control?: number | null;
      };
    };
    reply: PushForecast;
  };
  /**
   * Sends a push. The body is the same as for `POST /1.1/push` or `POST /1.1/push/devices`.
   * `Idempotency-Key` is its `req_id`. With the digest of a dry run in `X-Carillon-Explained`, 409
   * if the audience changed by more than 5 %.
   */
  sendAppPush: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        undoSeconds?: number;
      };
      body: {
        data: Record<string, unknown>;
        languages?: Record<string, Record<string, unknown>> | null;
        variables?: Record<string, {
          field: string;
          default: string;
        }> | null;
        notification_id?: string | null;
        campaign?: string | null;
        req_id?: string | null;
        expiration_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expiration_interval?: number | string | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        kind?: 'marketing' | 'transactional' | null;
        class?: 'im' | 'call' | 'account' | 'finance' | 'order' | 'express' | 'todo' | 'travel' | 'health' | 'device' | 'mail' | 'subscription' | 'news' | 'content' | 'social' | 'marketing' | null;
        device_cap?: number | null;
        quiet_hours?: string | null;
        lastActiveDeviceOnly?: boolean | null;
        _notificationChannel?: string | null;
        where?: Record<string, unknown> | unknown[] | string;
        cql?: string;
        channels?: string | string[] | null;
        push_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        push_time_local?: boolean | null;
        default_time_zone?: string | null;
        flow_control?: number | null;
      } | {
        data: Record<string, unknown>;
        languages?: Record<string, Record<string, unknown>> | null;
        variables?: Record<string, {
          field: string;
          default: string;
        }> | null;
        notification_id?: string | null;
        campaign?: string | null;
        req_id?: string | null;
        expiration_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expiration_interval?: number | string | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        kind?: 'marketing' | 'transactional' | null;
        class?: 'im' | 'call' | 'account' | 'finance' | 'order' | 'express' | 'todo' | 'travel' | 'health' | 'device' | 'mail' | 'subscription' | 'news' | 'content' | 'social' | 'marketing' | null;
        device_cap?: number | null;
        quiet_hours?: string | null;
        lastActiveDeviceOnly?: boolean | null;
        _notificationChannel?: string | null;
        device_type: 'android' | 'ios';
        device_ids: string[];
        device_profile?: string | null;
        channel?: string | null;
        vendor?: string | null;
      };
    };
    reply: SentPush;
  };
  /** Starts a Live Activity, as `POST /1.1/liveActivities` does. */
  startAppLiveActivity: {
    input: {
      path: {
        appId: string;
      };
      body: {
        event: 'start';
        attributesType: string;
        attributes: Record<string, unknown>;
        contentState: Record<string, unknown>;
        alert: {
          title: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          body?: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          sound?: string;
        } | {
          title?: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          body: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          sound?: string;
        };
        staleDate?: string | null;
        inputPushToken?: boolean | 1 | null;
        inputPushChannel?: string | null;
        priority?: 10 | 5 | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        timestamp?: string | null;
        relevanceScore?: number | null;
        expirationTime?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expirationInterval?: number | string | null;
        notification_id?: string | null;
        req_id?: string | null;
        dryRun?: boolean | null;
        where?: Record<string, unknown> | unknown[] | string;
        cql?: string;
        channels?: string | string[] | null;
        flow_control?: number | null;
        kind?: 'marketing' | 'transactional' | null;
        device_cap?: number | null;
        quiet_hours?: string | null;
        lastActiveDeviceOnly?: boolean | null;
      };
    };
    reply: AcceptedPush | LiveActivityForecast;
  };
  /** Creates a broadcast channel at APNs. Each call creates another channel. */
  createAppBroadcastChannel: {
    input: {
      path: {
        appId: string;
      };
      body: {
        storage: 'none' | 'last';
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        dryRun?: boolean | null;
      };
    };
    reply: ChannelDryRun;
  };
  /** Lists the broadcast channels of a bundle id. */
  listAppBroadcastChannels: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        prod?: 'dev' | 'prod' | '';
        topic?: string;
        pgw_team_id?: string;
      };
    };
    reply: {
      results: ListedChannel[];
    };
  };
  /** Returns a broadcast channel. In the path, its id has `-` for `+` and `_` for `/`. */
  getAppBroadcastChannel: {
    input: {
      path: {
        appId: string;
        channel: string;
      };
      query?: {
        prod?: 'dev' | 'prod' | '';
        topic?: string;
        pgw_team_id?: string;
      };
    };
    reply: BroadcastChannel;
  };
  /** Deletes a broadcast channel for good. Its activities cannot be reached any more. */
  deleteAppBroadcastChannel: {
    input: {
      path: {
        appId: string;
        channel: string;
      };
      query?: {
        prod?: 'dev' | 'prod' | '';
        topic?: string;
        pgw_team_id?: string;
        dryRun?: '0' | '1' | 'true' | 'false' | '';
      };
      body?: {
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        dryRun?: boolean | null;
      };
    };
    reply: Empty | ChannelDryRun;
  };
  /** Updates or ends the activities that subscribe to a broadcast channel. */
  sendAppBroadcast: {
    input: {
      path: {
        appId: string;
        channel: string;
      };
      body: {
        event: 'update' | 'end';
        contentState?: Record<string, unknown> | null;
        staleDate?: string | null;
        dismissalDate?: string | null;
        alert?: {
          title: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          body?: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          sound?: string;
        } | {
          title?: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          body: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          sound?: string;
        } | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        timestamp?: string | null;
        relevanceScore?: number | null;
        expirationTime?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expirationInterval?: number | string | null;
        notification_id?: string | null;
        req_id?: string | null;
        dryRun?: boolean | null;
        priority?: 10 | 5 | 1 | null;
      };
    };
    reply: AcceptedPush | LiveActivityForecast;
  };
  /** Updates or ends a Live Activity, as `POST /1.1/liveActivities/:activityId` does. */
  changeAppLiveActivity: {
    input: {
      path: {
        appId: string;
        activityId: string;
      };
      body: {
        event: 'update' | 'end';
        contentState?: Record<string, unknown> | null;
        staleDate?: string | null;
        dismissalDate?: string | null;
        alert?: {
          title: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          body?: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          sound?: string;
        } | {
          title?: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          body: string | {
            'loc-key': string;
            'loc-args'?: string[];
          };
          sound?: string;
        } | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        pgw_team_id?: string | null;
        apns_team_id?: string | null;
        timestamp?: string | null;
        relevanceScore?: number | null;
        expirationTime?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expirationInterval?: number | string | null;
        notification_id?: string | null;
        req_id?: string | null;
        dryRun?: boolean | null;
        priority?: 10 | 5 | null;
      };
    };
    reply: AcceptedPush | LiveActivityForecast;
  };
  /** Lists the scheduled pushes of an app, earliest first. */
  listScheduledAppPushes: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: ScheduledEntry[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /**
   * Changes the time of a scheduled push. Its expiry stays unless the body sets one. The default
   * expiry of seven days moves with the push.
   */
  moveScheduledAppPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body: {
        push_time: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expiration_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        expiration_interval?: number | string | null;
      };
    };
    reply: ScheduledEntry;
  };
  /** Cancels a scheduled push. */
  cancelScheduledAppPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /** Counts by connector the devices that a push with this target would reach. */
  countAudience: {
    input: {
      path: {
        appId: string;
      };
      body?: {
        where?: Record<string, unknown> | unknown[] | string;
        cql?: string;
        channels?: string | string[] | null;
        prod?: 'dev' | 'prod' | null;
        topic?: string | null;
        device_ids?: string[];
        device_type?: 'android' | 'ios';
        device_profile?: string | null;
        vendor?: string | null;
        sample?: number;
        clauses?: boolean;
      };
    };
    reply: Audience;
  };
  /** Lists members of the newest 2000 installations with their most frequent values. */
  suggestFields: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        prefix?: string;
      };
    };
    reply: {
      results: SampledField[];
    };
  };
  /** Lists channels of the newest 2000 installations, most frequent first. */
  suggestChannels: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        prefix?: string;
      };
    };
    reply: {
      results: ({
        value: string | number | boolean;
        share: number;
      })[];
    };
  };
  /** Lists the pushes of an app including cancelled pushes, newest first. */
  listAppPushes: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        status?: string;
        recurring?: number;
        source?: string;
        text?: string;
        from?: string;
        to?: string;
        count?: '0' | '1' | 'true' | 'false' | '';
      };
    };
    reply: {
      results: ListedPush[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns the record of a push with its request and the profiles that it stopped using. */
  getAppPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: PushDetail;
  };
  /** Returns how far a push is: outcomes by connector, rate and time left. */
  getPushProgress: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: PushProgress;
  };
  /** Cancels an unfinished push and returns its record. */
  cancelPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: PushRecord;
  };
  /** Explains why a device did or did not get a push. */
  explainDevice: {
    input: {
      path: {
        appId: string;
        objectId: string;
        installation: string;
      };
    };
    reply: DeviceExplanation;
  };
  /** Lists the recipients that a push did not reach, each with the reason. */
  listPushFailures: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        outcome?: 'sent' | 'invalid_token' | 'failed' | 'expired' | 'capped' | 'dropped';
        reason?: string;
      };
    };
    reply: {
      results: PushFailure[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /**
   * Counts the failures of a push by cause, most frequent first, each with the code of a remedy.
   */
  summarizePushFailures: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: {
      results: FailureGroup[];
    };
  };
  /**
   * Lists the gateways’ message ids of a push, oldest first. Use them to contact a gateway’s
   * support.
   */
  listGatewayMessages: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: GatewayMessage[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns how many recipients were settled in each step of a push, by connector. */
  getPushTimeline: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      query?: {
        step?: number;
      };
    };
    reply: PushTimeline;
  };
  /** Pauses a push that is being sent and returns its record. */
  pausePush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: PushRecord;
  };
  /** Resumes a paused push and returns its record. `flow_control` in the body sets a new rate. */
  resumePush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        flow_control?: number | null;
      };
    };
    reply: PushRecord;
  };
  /**
   * Approves a push to many devices that another person or the app sent. Returns its record with
   * the number of missing approvals.
   */
  approvePush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: ApprovedPush;
  };
  /**
   * Recalls the messages of a finished or cancelled push: from gateways that can recall, and from
   * the device channel. With `replacement`, a new message replaces them elsewhere.
   */
  recallPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        dryRun?: boolean;
        replacement?: {
          data: Record<string, unknown>;
        };
      };
    };
    reply: {
      connectors: Partial<Record<'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush', {
        recalled?: number;
        replaced?: number;
        impossible?: number;
      }>>;
    };
  };
  /**
   * Deletes the devices whose tokens a finished push found invalid. This includes devices that the
   * push kept because most tokens of a profile were invalid. Devices that were saved since then
   * stay.
   */
  deleteInvalidDevices: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: {
      deleted: number;
    };
  };
  /**
   * Changes the recipients per second of an unfinished push and returns its record. Null means no
   * limit.
   */
  pacePush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body: {
        flow_control: number | null;
      };
    };
    reply: PushRecord;
  };
  /** Lists the frozen apps, and the freeze of the whole service. */
  listFreezes: {
    input: {};
    reply: {
      results: Freeze[];
    };
  };
  /**
   * Freezes the service. Pushes are accepted but not sent until it is released. Pushes being sent
   * stop within a second.
   */
  freezeService: {
    input: {
      body?: {
        reason?: string;
      };
    };
    reply: Freeze;
  };
  /** Ends the freeze of the service and returns it. The frozen pushes continue in their order. */
  releaseService: {
    input: {};
    reply: Freeze;
  };
  /**
   * Freezes an app. Its pushes are accepted but not sent until it is released. Pushes being sent
   * stop within a second.
   */
  freezeApp: {
    input: {
      path: {
        appId: string;
      };
      body?: {
        reason?: string;
      };
    };
    reply: Freeze;
  };
  /** Ends the freeze of an app and returns it. Its frozen pushes continue in their order. */
  releaseApp: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: Freeze;
  };
  /**
   * Lists finished pushes with recipients that failed, expired or were capped, newest first, with
   * the number of recipients in redrives.
   */
  listUndelivered: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        reason?: string;
        from?: string;
        to?: string;
      };
    };
    reply: {
      results: UndeliveredPush[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /**
   * Returns how many recipients a redrive has and which limits apply. Sends nothing. The body is
   * the same as for the redrive.
   */
  explainRedrive: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        outcomes?: ('failed' | 'expired' | 'capped')[];
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        reason?: string;
        from?: string;
        to?: string;
        includeUnsure?: boolean;
        expiration_interval?: number | string | null;
        expiration_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        flow_control?: number | null;
      };
    };
    reply: RedriveForecast;
  };
  /**
   * Sends a finished push again to the selected recipients that it certainly did not reach. Each
   * recipient gets it at most once. `Idempotency-Key` is the `req_id` of the redrive.
   */
  redriveAppPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        outcomes?: ('failed' | 'expired' | 'capped')[];
        connector?: 'apns' | 'fcm' | 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'vendor_e' | 'vendor_f' | 'vendor_g' | 'channel' | 'webpush';
        reason?: string;
        from?: string;
        to?: string;
        includeUnsure?: boolean;
        expiration_interval?: number | string | null;
        expiration_time?: string | {
          __type: 'Date';
          iso: string;
        } | null;
        flow_control?: number | null;
      };
    };
    reply: SentPush;
  };
  /** As `redrive`, with outcomes only. */
  resendAppPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body: {
        outcomes: ('failed' | 'expired' | 'capped')[];
      };
    };
    reply: SentPush;
  };
  /** Creates a recurring push, which sends a push at each time of its cron expression. */
  createRecurringPush: {
    input: {
      path: {
        appId: string;
      };
      body: {
        name: string;
        expression: string;
        timeZone: string;
        startsAt?: string | null;
        endsAt?: string | null;
        body: Record<string, unknown>;
        isEnabled?: boolean;
      };
    };
    reply: RecurringPush;
  };
  /** Lists the recurring pushes of an app, newest first. */
  listRecurringPushes: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: RecurringPush[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /**
   * Returns the next times of a cron expression, in UTC and in its time zone, and stores nothing.
   */
  previewRecurringPush: {
    input: {
      path: {
        appId: string;
      };
      body: {
        expression: string;
        timeZone: string;
        startsAt?: string | null;
        endsAt?: string | null;
        count?: number;
      };
    };
    reply: RecurringTimes;
  };
  /** Returns a recurring push. */
  getRecurringPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: RecurringPush;
  };
  /**
   * Changes members of a recurring push, or enables or disables it. New times apply from now on.
   */
  changeRecurringPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body: {
        name?: string;
        expression?: string;
        timeZone?: string;
        startsAt?: string | null;
        endsAt?: string | null;
        body?: Record<string, unknown>;
        isEnabled?: boolean;
      };
    };
    reply: RecurringPush;
  };
  /** Deletes a recurring push. The pushes that it made stay. */
  deleteRecurringPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /**
   * Sends a push from a recurring push now. Its times do not change. `Idempotency-Key` is the
   * `req_id` of the push.
   */
  startRecurringPush: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: SentPush;
  };
  /** Lists the push templates of an app by name. */
  listPushTemplates: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: {
      results: PushTemplate[];
    };
  };
  /** Returns a push template. */
  getPushTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: PushTemplate;
  };
  /** Creates or replaces a push template. */
  putPushTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      body: {
        body: Record<string, unknown>;
      };
    };
    reply: PushTemplate;
  };
  /** Deletes a push template. */
  deletePushTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /** Lists the saved audiences of an app by name. */
  listAudiences: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: {
      results: SavedAudience[];
    };
  };
  /** Returns a saved audience. */
  getAudience: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: SavedAudience;
  };
  /** Creates or replaces a saved audience. */
  putAudience: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      body: {
        where: Record<string, unknown> | (Record<string, unknown>)[];
      };
    };
    reply: SavedAudience;
  };
  /** Deletes a saved audience. */
  deleteAudience: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /** Lists the test devices of an app by name. */
  listTestDevices: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: {
      results: TestDevice[];
    };
  };
  /** Returns a test device. */
  getTestDevice: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: TestDevice;
  };
  /** Creates or replaces a test device. */
  putTestDevice: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      body: {
        installation: string;
      };
    };
    reply: TestDevice;
  };
  /** Deletes a test device. */
  deleteTestDevice: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /**
   * Lists the installations of an app by an id or a condition, newest first. Below the role
   * operator, tokens are shortened.
   */
  listAppInstallations: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        q?: string;
        where?: string;
        count?: 'all' | '0' | '1' | 'true' | 'false' | '';
      };
    };
    reply: {
      results: Installation[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns an installation with its route, its session and its waiting messages. */
  getAppInstallation: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: DeviceDetail;
  };
  /**
   * Changes members of an installation, as `PUT /1.1/installations/:objectId` does with the master
   * key.
   */
  updateAppInstallation: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        deviceType?: 'ios' | 'macos' | 'tvos' | 'watchos' | 'visionos' | 'android' | 'harmony' | 'harmonyos' | 'ohos' | 'openharmony' | 'wp' | 'web' | null;
        deviceToken?: string | null;
        installationId?: string | null;
        registrationId?: string | null;
        subscription?: {
          endpoint: string;
          keys: {
            p256dh: string;
            auth: string;
          };
          expirationTime?: number | null;
          keyId?: string;
        } | string | null;
        vendor?: string | null;
        deviceProfile?: string | null;
        apnsTopic?: string | null;
        pgwTopic?: string | null;
        apnsTeamId?: string | null;
        pgwTeamId?: string | null;
        channels?: string[] | {
          __op: 'Add' | 'AddUnique' | 'Remove' | 'Delete' | 'Batch';
          objects?: unknown[];
          [member: string]: unknown;
        } | null;
        valid?: boolean | null;
        timeZone?: string | null;
        badge?: number | {
          __op: 'Increment' | 'Decrement' | 'Delete' | 'Batch';
          [member: string]: unknown;
        } | null;
        [member: string]: unknown;
      };
    };
    reply: Installation;
  };
  /** Deletes an installation. */
  deleteAppInstallation: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /** Explains the newest pushes of the app for one installation. */
  listInstallationPushes: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      query?: {
        limit?: number;
      };
    };
    reply: {
      results: DevicePush[];
    };
  };
  /**
   * Deletes the installations that match a condition. Returns 409 if their number is not the
   * expected number.
   */
  deleteMatchingInstallations: {
    input: {
      path: {
        appId: string;
      };
      body: {
        where: Record<string, unknown>;
        expected: number;
      };
    };
    reply: DeletedCount;
  };
  /**
   * Lists the users of an app by an id or a condition, newest first. Below the role operator,
   * personal data is shortened.
   */
  listAppUsers: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        q?: string;
        where?: string;
        count?: '0' | '1' | 'true' | 'false' | '';
      };
    };
    reply: {
      results: UserPart[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns a user with third-party accounts and lock state. */
  getAppUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: UserDetail;
  };
  /**
   * Changes members of a user, as `PUT /1.1/users/:objectId` does with the master key, including
   * hooks.
   */
  updateAppUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        username?: string;
        password?: string;
        email?: string | null;
        mobilePhoneNumber?: string | null;
        authData?: Record<string, Record<string, unknown> | null> | null;
        ACL?: Record<string, {
          read?: boolean;
          write?: boolean;
        }> | null;
        [member: string]: unknown;
      };
    };
    reply: UserDetail;
  };
  /**
   * Deletes a user, including hooks. With `everything`, also deletes all that is stored of the
   * person, and returns a report. This needs the role owner.
   */
  deleteAppUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      query?: {
        everything?: '0' | '1' | 'true' | 'false' | '';
        dryRun?: '0' | '1' | 'true' | 'false' | '';
      };
    };
    reply: Empty | ErasureReport;
  };
  /** Returns everything that is stored of one person. Secrets are named without their value. */
  exportAppUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: PersonExport;
  };
  /** Ends the session of a user on all devices. */
  logoutUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /** Ends the lock of a user after failed logins. */
  unlockUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /** Mails a link to a user. The link resets the password. */
  sendUserReset: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /** Marks the address or number of a user as verified, without a message. */
  verifyUser: {
    input: {
      path: {
        appId: string;
        id: string;
      };
      body?: {
        contact?: 'email' | 'mobilePhoneNumber';
      };
    };
    reply: Empty;
  };
  /**
   * Lists mails and SMS messages, newest first, including messages that no provider could send.
   * Returns pages if `state`, `limit` or `cursor` is set. Operators always get pages, without
   * texts.
   */
  listOutbox: {
    input: {
      path: {
        appId: string;
      };
      query?: {
        kind?: 'sms' | 'mail';
        to?: string;
        state?: 'waiting' | 'sent' | 'kept' | 'failed';
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: OutboxMessage[];
    } | {
      results: ListedMessage[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns the characters of a captcha, in tests only (`NODE_ENV=test`). */
  revealCaptcha: {
    input: {
      path: {
        appId: string;
        token: string;
      };
    };
    reply: CaptchaText;
  };
  /** Sends a message again that failed or had no provider. */
  retryMessage: {
    input: {
      path: {
        appId: string;
        id: string;
      };
    };
    reply: Empty;
  };
  /** Counts by cause the messages that a redrive of the outbox would send again. Sends nothing. */
  explainMessageRedrive: {
    input: {
      path: {
        appId: string;
      };
      body?: {
        kind?: 'sms' | 'mail';
        state?: 'failed' | 'kept';
        reason?: string;
        from?: string;
        to?: string;
        cursor?: string;
      };
    };
    reply: MessageForecast;
  };
  /**
   * Sends messages again that failed or had no provider, oldest first, at most 1000. Skips expired
   * codes.
   */
  redriveMessages: {
    input: {
      path: {
        appId: string;
      };
      body?: {
        kind?: 'sms' | 'mail';
        state?: 'failed' | 'kept';
        reason?: string;
        from?: string;
        to?: string;
        cursor?: string;
      };
    };
    reply: RedrivenMessages;
  };
  /** Returns the balance, budgets and suspended countries of the SMS of an app. */
  getSmsState: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: SmsState;
  };
  /** Creates or replaces an SMS template. */
  putSmsTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      body: {
        type: 'verification' | 'notification';
        text: string;
        providers?: {
          aliyun?: {
            code: string;
            params?: Record<string, string>;
          };
          tencent?: {
            id: string;
            params?: string[];
          };
        };
      };
    };
    reply: SmsTemplate;
  };
  /** Returns an SMS template. */
  getSmsTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: SmsTemplate;
  };
  /** Deletes an SMS template. */
  deleteSmsTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /** Lists the SMS templates of an app. */
  listSmsTemplates: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: {
      results: SmsTemplate[];
    };
  };
  /** Approves an SMS template. */
  approveSmsTemplate: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: SmsTemplate;
  };
  /** Creates an SMS signature. */
  putSmsSignature: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      body?: object;
    };
    reply: SmsSignature;
  };
  /** Returns an SMS signature. */
  getSmsSignature: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: SmsSignature;
  };
  /** Deletes an SMS signature. */
  deleteSmsSignature: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /** Lists the SMS signatures of an app. */
  listSmsSignatures: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: {
      results: SmsSignature[];
    };
  };
  /** Approves an SMS signature. */
  approveSmsSignature: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: SmsSignature;
  };
  /**
   * Creates or replaces a webhook of an app. The reply to a creation contains the secret of its
   * signatures.
   */
  putWebhook: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      body: {
        url: string;
        events: ('push.accepted' | 'push.done' | 'push.cancelled' | 'push.failed' | 'push.waiting_approval' | 'recipients.outcome' | 'recipients.receipt' | 'recipients.opened' | 'installation.invalid' | 'message.failed' | 'breaker.opened' | 'breaker.closed' | 'credentials.ending' | 'quota.near' | 'freeze.started' | 'freeze.ended')[];
        isEnabled?: boolean;
        format?: 'standard' | 'feishu' | 'dingtalk' | 'wecom' | 'slack';
        language?: 'en' | 'zh';
        signingSecret?: string;
      };
    };
    reply: Webhook;
  };
  /** Returns a webhook of an app. */
  getWebhook: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Webhook;
  };
  /** Deletes a webhook of an app with its deliveries. */
  deleteWebhook: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Empty;
  };
  /** Lists the webhooks of an app with their state. */
  listWebhooks: {
    input: {
      path: {
        appId: string;
      };
    };
    reply: {
      results: Webhook[];
    };
  };
  /** Sends an event `webhook.test` to a webhook of an app, also while it is off. */
  testWebhook: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: WebhookDelivery;
  };
  /**
   * Replaces the secret of a webhook of an app and returns it. Requests have two signatures for 24
   * hours.
   */
  rotateWebhook: {
    input: {
      path: {
        appId: string;
        name: string;
      };
    };
    reply: Webhook;
  };
  /** Lists the deliveries of a webhook of an app, newest first. */
  listWebhookDeliveries: {
    input: {
      path: {
        appId: string;
        name: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        state?: 'waiting' | 'delivered' | 'failed';
        type?: 'push.accepted' | 'push.done' | 'push.cancelled' | 'push.failed' | 'push.waiting_approval' | 'recipients.outcome' | 'recipients.receipt' | 'recipients.opened' | 'installation.invalid' | 'message.failed' | 'breaker.opened' | 'breaker.closed' | 'credentials.ending' | 'quota.near' | 'freeze.started' | 'freeze.ended' | 'webhook.test';
      };
    };
    reply: {
      results: WebhookDelivery[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Sends a delivery of a webhook of an app again, also while the webhook is off. */
  redeliverWebhookDelivery: {
    input: {
      path: {
        appId: string;
        name: string;
        id: string;
      };
    };
    reply: WebhookDelivery;
  };
  /** Lists the webhooks of the service with their state. */
  listServiceWebhooks: {
    input: {};
    reply: {
      results: Webhook[];
    };
  };
  /** Returns a webhook of the service. */
  getServiceWebhook: {
    input: {
      path: {
        name: string;
      };
    };
    reply: Webhook;
  };
  /**
   * Creates or replaces a webhook of the service. The reply to a creation contains the secret of
   * its signatures.
   */
  putServiceWebhook: {
    input: {
      path: {
        name: string;
      };
      body: {
        url: string;
        events: ('push.accepted' | 'push.done' | 'push.cancelled' | 'push.failed' | 'push.waiting_approval' | 'recipients.outcome' | 'recipients.receipt' | 'recipients.opened' | 'installation.invalid' | 'message.failed' | 'breaker.opened' | 'breaker.closed' | 'credentials.ending' | 'quota.near' | 'freeze.started' | 'freeze.ended')[];
        isEnabled?: boolean;
        format?: 'standard' | 'feishu' | 'dingtalk' | 'wecom' | 'slack';
        language?: 'en' | 'zh';
        signingSecret?: string;
      };
    };
    reply: Webhook;
  };
  /** Deletes a webhook of the service with its deliveries. */
  deleteServiceWebhook: {
    input: {
      path: {
        name: string;
      };
    };
    reply: Empty;
  };
  /** Sends an event `webhook.test` to a webhook of the service, also while it is off. */
  testServiceWebhook: {
    input: {
      path: {
        name: string;
      };
    };
    reply: WebhookDelivery;
  };
  /**
   * Replaces the secret of a webhook of the service and returns it. Requests have two signatures
   * for 24 hours.
   */
  rotateServiceWebhook: {
    input: {
      path: {
        name: string;
      };
    };
    reply: Webhook;
  };
  /** Lists the deliveries of a webhook of the service, newest first. */
  listServiceWebhookDeliveries: {
    input: {
      path: {
        name: string;
      };
      query?: {
        limit?: number;
        cursor?: string;
        state?: 'waiting' | 'delivered' | 'failed';
        type?: 'push.accepted' | 'push.done' | 'push.cancelled' | 'push.failed' | 'push.waiting_approval' | 'recipients.outcome' | 'recipients.receipt' | 'recipients.opened' | 'installation.invalid' | 'message.failed' | 'breaker.opened' | 'breaker.closed' | 'credentials.ending' | 'quota.near' | 'freeze.started' | 'freeze.ended' | 'webhook.test';
      };
    };
    reply: {
      results: WebhookDelivery[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Sends a delivery of a webhook of the service again, also while the webhook is off. */
  redeliverServiceWebhookDelivery: {
    input: {
      path: {
        name: string;
        id: string;
      };
    };
    reply: WebhookDelivery;
  };
  /** Creates a token for a person or a machine. Only this reply contains the token itself. */
  createConsoleToken: {
    input: {
      body: {
        name: string;
        role: 'viewer' | 'sender' | 'operator' | 'owner';
        apps?: string[] | null;
        expiresAt?: string | null;
      };
    };
    reply: CreatedConsoleToken;
  };
  /** Lists the tokens without their secrets, newest first. */
  listConsoleTokens: {
    input: {
      query?: {
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: ConsoleToken[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Deletes a token. Its sessions end at once. */
  deleteConsoleToken: {
    input: {
      path: {
        id: string;
      };
    };
    reply: Empty;
  };
  /** Lists the changes that callers of the admin API made, newest first. */
  listAudit: {
    input: {
      query?: {
        limit?: number;
        cursor?: string;
        app?: string;
        actor?: string;
        action?: string;
        target?: string;
        from?: string;
        to?: string;
      };
    };
    reply: {
      results: AuditEntry[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Returns how people may log in to the console. Needs no credentials. */
  getLoginMethods: {
    input: {};
    reply: LoginMethods;
  };
  /** Starts a console session by a token or the code of a login link, and sets its cookie. */
  startConsoleSession: {
    input: {
      body: {
        token: string;
      } | {
        code: string;
        replace?: boolean;
      };
    };
    reply: CurrentOperator;
  };
  /** Returns the caller, and when the session ends. */
  getConsoleSession: {
    input: {};
    reply: CurrentOperator;
  };
  /** Ends the session of the call. */
  endConsoleSession: {
    input: {};
    reply: EndedSession;
  };
  /** Returns a link that logs in once within 15 minutes, with the permissions of the caller. */
  createLoginLink: {
    input: {};
    reply: LoginLink;
  };
  /** Lists the sessions of the console, newest first. */
  listConsoleSessions: {
    input: {
      query?: {
        limit?: number;
        cursor?: string;
      };
    };
    reply: {
      results: ConsoleSession[];
      next: string | null;
      count?: number;
      countIsLeast?: boolean;
    };
  };
  /** Ends a session of the console. */
  deleteConsoleSession: {
    input: {
      path: {
        id: string;
      };
    };
    reply: Empty;
  };
  /** Runs the checks of `carillon doctor` that need only the database. */
  runDoctor: {
    input: {
      query?: {
        production?: '0' | '1' | 'true' | 'false' | '';
      };
    };
    reply: {
      results: DoctorFinding[];
    };
  };
  /**
   * Returns the state of one app or of all apps: running pushes, today, open breakers, credentials
   * that expire.
   */
  getOverview: {
    input: {
      query?: {
        app?: string;
      };
    };
    reply: Overview;
  };
  /** Streams changes of pushes, the overview, breakers and queues as server-sent events. */
  streamEvents: {
    input: {
      query: {
        topics: string;
      };
    };
    reply: never;
  };
  /**
   * Finds apps, pushes, installations and users by an id, a token, a name, an address or a number.
   */
  search: {
    input: {
      query: {
        q: string;
        app?: string;
      };
    };
    reply: {
      results: SearchHit[];
    };
  };
  /**
   * Describes the service: version, connectors with their credentials, options and the body of a
   * push.
   */
  getMeta: {
    input: {};
    reply: Meta;
  };
  /** Lists the queues of the dispatchers with their jobs. */
  listQueues: {
    input: {};
    reply: {
      results: QueueState[];
    };
  };
  /** Lists the running api and dispatcher processes. Each process renews its entry every 5 s. */
  listProcesses: {
    input: {};
    reply: {
      results: SeenProcess[];
    };
  };
  /** Lists the unfinished jobs of a queue, oldest first. */
  listJobs: {
    input: {
      path: {
        queue: string;
      };
      query?: {
        limit?: number;
        state?: 'created' | 'retry' | 'active';
        minTries?: number;
      };
    };
    reply: {
      results: WaitingJob[];
    };
  };
  /**
   * Returns the keys of CARILLON_SECRET by id, the number of values encrypted with each key, and
   * the rotation.
   */
  getSecretRotation: {
    input: {
      query?: {
        count?: '0' | '1' | 'true' | 'false' | '';
      };
    };
    reply: SecretState;
  };
  /** Requests that dispatchers encrypt all stored values with the first key of CARILLON_SECRET. */
  rotateSecret: {
    input: {};
    reply: SecretState;
  };
}

export type Operation = keyof Operations;

/** Method and path of each operation. */
export const operations: Readonly<Record<Operation, readonly [method: string, path: string]>> = {
  createApp: ['POST', '/apps'],
  listApps: ['GET', '/apps'],
  getApp: ['GET', '/apps/{appId}'],
  updateApp: ['PATCH', '/apps/{appId}'],
  deleteApp: ['DELETE', '/apps/{appId}'],
  getMoveIn: ['GET', '/apps/{appId}/move-in'],
  getUsage: ['GET', '/apps/{appId}/usage'],
  getReport: ['GET', '/apps/{appId}/reports'],
  getKey: ['GET', '/apps/{appId}/keys/{key}'],
  rotateKey: ['POST', '/apps/{appId}/keys/{key}/rotate'],
  putProfile: ['PUT', '/apps/{appId}/profiles/{connector}/{name}'],
  getProfile: ['GET', '/apps/{appId}/profiles/{connector}/{name}'],
  deleteProfile: ['DELETE', '/apps/{appId}/profiles/{connector}/{name}'],
  checkProfile: ['POST', '/apps/{appId}/profiles/{connector}/{name}/check'],
  listProfiles: ['GET', '/apps/{appId}/profiles'],
  getQuotas: ['GET', '/apps/{appId}/quotas'],
  listBreakers: ['GET', '/breakers'],
  openBreaker: ['POST', '/breakers/{id}/open'],
  closeBreaker: ['POST', '/breakers/{id}/close'],
  releaseBreaker: ['POST', '/breakers/{id}/release'],
  stageProfile: ['PUT', '/apps/{appId}/profiles/{connector}/{name}/candidate'],
  getProfileRotation: ['GET', '/apps/{appId}/profiles/{connector}/{name}/candidate'],
  promoteProfile: ['POST', '/apps/{appId}/profiles/{connector}/{name}/candidate/promote'],
  rollBackProfile: ['POST', '/apps/{appId}/profiles/{connector}/{name}/candidate/rollback'],
  listFailedReceipts: ['GET', '/apps/{appId}/failed-receipts'],
  explainReceiptRedrive: ['POST', '/apps/{appId}/failed-receipts/redrive/explain'],
  redriveReceipts: ['POST', '/apps/{appId}/failed-receipts/redrive'],
  explainPush: ['POST', '/apps/{appId}/push/explain'],
  sendAppPush: ['POST', '/apps/{appId}/push'],
  startAppLiveActivity: ['POST', '/apps/{appId}/liveActivities'],
  createAppBroadcastChannel: ['POST', '/apps/{appId}/liveActivities/channels'],
  listAppBroadcastChannels: ['GET', '/apps/{appId}/liveActivities/channels'],
  getAppBroadcastChannel: ['GET', '/apps/{appId}/liveActivities/channels/{channel}'],
  deleteAppBroadcastChannel: ['DELETE', '/apps/{appId}/liveActivities/channels/{channel}'],
  sendAppBroadcast: ['POST', '/apps/{appId}/liveActivities/channels/{channel}'],
  changeAppLiveActivity: ['POST', '/apps/{appId}/liveActivities/{activityId}'],
  listScheduledAppPushes: ['GET', '/apps/{appId}/scheduled'],
  moveScheduledAppPush: ['PATCH', '/apps/{appId}/scheduled/{id}'],
  cancelScheduledAppPush: ['DELETE', '/apps/{appId}/scheduled/{id}'],
  countAudience: ['POST', '/apps/{appId}/audience'],
  suggestFields: ['GET', '/apps/{appId}/fields'],
  suggestChannels: ['GET', '/apps/{appId}/channels'],
  listAppPushes: ['GET', '/apps/{appId}/notifications'],
  getAppPush: ['GET', '/apps/{appId}/notifications/{id}'],
  getPushProgress: ['GET', '/apps/{appId}/notifications/{id}/progress'],
  cancelPush: ['POST', '/apps/{appId}/notifications/{id}/cancel'],
  explainDevice: ['GET', '/apps/{appId}/notifications/{objectId}/devices/{installation}'],
  listPushFailures: ['GET', '/apps/{appId}/notifications/{id}/failures'],
  summarizePushFailures: ['GET', '/apps/{appId}/notifications/{id}/failures/summary'],
  listGatewayMessages: ['GET', '/apps/{appId}/notifications/{id}/messages'],
  getPushTimeline: ['GET', '/apps/{appId}/notifications/{id}/timeline'],
  pausePush: ['POST', '/apps/{appId}/notifications/{id}/pause'],
  resumePush: ['POST', '/apps/{appId}/notifications/{id}/resume'],
  approvePush: ['POST', '/apps/{appId}/notifications/{id}/approve'],
  recallPush: ['POST', '/apps/{appId}/notifications/{id}/recall'],
  deleteInvalidDevices: ['POST', '/apps/{appId}/notifications/{id}/delete-invalid'],
  pacePush: ['POST', '/apps/{appId}/notifications/{id}/pace'],
  listFreezes: ['GET', '/freezes'],
  freezeService: ['PUT', '/freeze'],
  releaseService: ['DELETE', '/freeze'],
  freezeApp: ['PUT', '/apps/{appId}/freeze'],
  releaseApp: ['DELETE', '/apps/{appId}/freeze'],
  listUndelivered: ['GET', '/apps/{appId}/undelivered'],
  explainRedrive: ['POST', '/apps/{appId}/notifications/{id}/redrive/explain'],
  redriveAppPush: ['POST', '/apps/{appId}/notifications/{id}/redrive'],
  resendAppPush: ['POST', '/apps/{appId}/notifications/{id}/resend'],
  createRecurringPush: ['POST', '/apps/{appId}/recurring-pushes'],
  listRecurringPushes: ['GET', '/apps/{appId}/recurring-pushes'],
  previewRecurringPush: ['POST', '/apps/{appId}/recurring-pushes/preview'],
  getRecurringPush: ['GET', '/apps/{appId}/recurring-pushes/{id}'],
  changeRecurringPush: ['PATCH', '/apps/{appId}/recurring-pushes/{id}'],
  deleteRecurringPush: ['DELETE', '/apps/{appId}/recurring-pushes/{id}'],
  startRecurringPush: ['POST', '/apps/{appId}/recurring-pushes/{id}/start'],
  listPushTemplates: ['GET', '/apps/{appId}/push-templates'],
  getPushTemplate: ['GET', '/apps/{appId}/push-templates/{name}'],
  putPushTemplate: ['PUT', '/apps/{appId}/push-templates/{name}'],
  deletePushTemplate: ['DELETE', '/apps/{appId}/push-templates/{name}'],
  listAudiences: ['GET', '/apps/{appId}/audiences'],
  getAudience: ['GET', '/apps/{appId}/audiences/{name}'],
  putAudience: ['PUT', '/apps/{appId}/audiences/{name}'],
  deleteAudience: ['DELETE', '/apps/{appId}/audiences/{name}'],
  listTestDevices: ['GET', '/apps/{appId}/test-devices'],
  getTestDevice: ['GET', '/apps/{appId}/test-devices/{name}'],
  putTestDevice: ['PUT', '/apps/{appId}/test-devices/{name}'],
  deleteTestDevice: ['DELETE', '/apps/{appId}/test-devices/{name}'],
  listAppInstallations: ['GET', '/apps/{appId}/installations'],
  getAppInstallation: ['GET', '/apps/{appId}/installations/{id}'],
  updateAppInstallation: ['PUT', '/apps/{appId}/installations/{id}'],
  deleteAppInstallation: ['DELETE', '/apps/{appId}/installations/{id}'],
  listInstallationPushes: ['GET', '/apps/{appId}/installations/{id}/pushes'],
  deleteMatchingInstallations: ['POST', '/apps/{appId}/installations/delete'],
  listAppUsers: ['GET', '/apps/{appId}/users'],
  getAppUser: ['GET', '/apps/{appId}/users/{id}'],
  updateAppUser: ['PUT', '/apps/{appId}/users/{id}'],
  deleteAppUser: ['DELETE', '/apps/{appId}/users/{id}'],
  exportAppUser: ['GET', '/apps/{appId}/users/{id}/export'],
  logoutUser: ['POST', '/apps/{appId}/users/{id}/logout'],
  unlockUser: ['POST', '/apps/{appId}/users/{id}/unlock'],
  sendUserReset: ['POST', '/apps/{appId}/users/{id}/send-reset'],
  verifyUser: ['POST', '/apps/{appId}/users/{id}/verify'],
  listOutbox: ['GET', '/apps/{appId}/outbox'],
  revealCaptcha: ['GET', '/apps/{appId}/captchas/{token}'],
  retryMessage: ['POST', '/apps/{appId}/outbox/{id}/retry'],
  explainMessageRedrive: ['POST', '/apps/{appId}/outbox/redrive/explain'],
  redriveMessages: ['POST', '/apps/{appId}/outbox/redrive'],
  getSmsState: ['GET', '/apps/{appId}/sms-state'],
  putSmsTemplate: ['PUT', '/apps/{appId}/sms-templates/{name}'],
  getSmsTemplate: ['GET', '/apps/{appId}/sms-templates/{name}'],
  deleteSmsTemplate: ['DELETE', '/apps/{appId}/sms-templates/{name}'],
  listSmsTemplates: ['GET', '/apps/{appId}/sms-templates'],
  approveSmsTemplate: ['POST', '/apps/{appId}/sms-templates/{name}/approve'],
  putSmsSignature: ['PUT', '/apps/{appId}/sms-signatures/{name}'],
  getSmsSignature: ['GET', '/apps/{appId}/sms-signatures/{name}'],
  deleteSmsSignature: ['DELETE', '/apps/{appId}/sms-signatures/{name}'],
  listSmsSignatures: ['GET', '/apps/{appId}/sms-signatures'],
  approveSmsSignature: ['POST', '/apps/{appId}/sms-signatures/{name}/approve'],
  putWebhook: ['PUT', '/apps/{appId}/webhooks/{name}'],
  getWebhook: ['GET', '/apps/{appId}/webhooks/{name}'],
  deleteWebhook: ['DELETE', '/apps/{appId}/webhooks/{name}'],
  listWebhooks: ['GET', '/apps/{appId}/webhooks'],
  testWebhook: ['POST', '/apps/{appId}/webhooks/{name}/test'],
  rotateWebhook: ['POST', '/apps/{appId}/webhooks/{name}/rotate'],
  listWebhookDeliveries: ['GET', '/apps/{appId}/webhooks/{name}/deliveries'],
  redeliverWebhookDelivery: ['POST', '/apps/{appId}/webhooks/{name}/deliveries/{id}/redeliver'],
  listServiceWebhooks: ['GET', '/webhooks'],
  getServiceWebhook: ['GET', '/webhooks/{name}'],
  putServiceWebhook: ['PUT', '/webhooks/{name}'],
  deleteServiceWebhook: ['DELETE', '/webhooks/{name}'],
  testServiceWebhook: ['POST', '/webhooks/{name}/test'],
  rotateServiceWebhook: ['POST', '/webhooks/{name}/rotate'],
  listServiceWebhookDeliveries: ['GET', '/webhooks/{name}/deliveries'],
  redeliverServiceWebhookDelivery: ['POST', '/webhooks/{name}/deliveries/{id}/redeliver'],
  createConsoleToken: ['POST', '/tokens'],
  listConsoleTokens: ['GET', '/tokens'],
  deleteConsoleToken: ['DELETE', '/tokens/{id}'],
  listAudit: ['GET', '/audit'],
  getLoginMethods: ['GET', '/login-methods'],
  startConsoleSession: ['POST', '/session'],
  getConsoleSession: ['GET', '/session'],
  endConsoleSession: ['DELETE', '/session'],
  createLoginLink: ['POST', '/login-links'],
  listConsoleSessions: ['GET', '/sessions'],
  deleteConsoleSession: ['DELETE', '/sessions/{id}'],
  runDoctor: ['GET', '/doctor'],
  getOverview: ['GET', '/overview'],
  streamEvents: ['GET', '/events'],
  search: ['GET', '/search'],
  getMeta: ['GET', '/meta'],
  listQueues: ['GET', '/queues'],
  listProcesses: ['GET', '/processes'],
  listJobs: ['GET', '/queues/{queue}/jobs'],
  getSecretRotation: ['GET', '/secret/rotation'],
  rotateSecret: ['POST', '/secret/rotation'],
};
