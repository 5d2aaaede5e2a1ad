import { type ConnectorId, isConnectorId } from '../../../shared/domain/labels.ts';
import { type Outcome, outcomes } from '../../../shared/domain/outcome.ts';

/** Query parameters of a URL, as parsed by the page at that URL. Unknown parameters are dropped. */
type Search = Record<string, unknown>;

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** Returns the value if it is one of these texts. */
const oneOf = <T extends string>(values: readonly T[], value: unknown): T | undefined =>
  values.find((one) => one === value);

/** Returns a cursor. The router parses a numeric cursor as a number. */
const cursorOf = (value: unknown): string | undefined =>
  typeof value === 'number' ? String(value) : text(value);

/** Filters of the list of apps. */
export interface AppFilters {
  q?: string | undefined;
  /** `activity` shows the app with the newest push first. The default is the name. */
  sort?: 'activity' | undefined;
  cursor?: string | undefined;
}

export const readAppFilters = (search: Search): AppFilters => ({
  q: cursorOf(search.q),
  sort: search.sort === 'activity' ? 'activity' : undefined,
  cursor: text(search.cursor),
});

/** Filters of the list of pushes. */
export interface PushFilters {
  status?: string | undefined;
  q?: string | undefined;
  source?: string | undefined;
  /** Id of the recurring push that created the pushes. */
  recurring?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  cursor?: string | undefined;
}

/** Filters and selected pushes of the list. */
export interface PushListSearch extends PushFilters {
  /** At most two ids, separated by a comma. They can be compared. */
  chosen?: string | undefined;
}

export const readPushFilters = (search: Search): PushListSearch => ({
  chosen: cursorOf(search.chosen),
  status: text(search.status),
  q: text(search.q),
  source: text(search.source),
  recurring: cursorOf(search.recurring),
  from: text(search.from),
  to: text(search.to),
  cursor: cursorOf(search.cursor),
});

const pushTabs = ['progress', 'failures', 'content', 'audience', 'ids'] as const;

/** Tab of a push's page. */
export type PushTab = (typeof pushTabs)[number];

export interface PushSearch extends FailureFilters {
  tab?: PushTab | undefined;
  /** True if the page opens with the dry run of a redrive. */
  redrive?: true | undefined;
}

/** Cause of the listed failures. */
export interface FailureFilters {
  connector?: ConnectorId | undefined;
  outcome?: Outcome | undefined;
  reason?: string | undefined;
  cursor?: string | undefined;
}

/** Returns the value if it is a connector id, otherwise undefined. */
export const connectorOf = (value: unknown): ConnectorId | undefined =>
  typeof value === 'string' && isConnectorId(value) ? value : undefined;

export const readPushSearch = (search: Search): PushSearch => ({
  tab: oneOf(pushTabs, search.tab),
  redrive: search.redrive === true ? true : undefined,
  connector: connectorOf(search.connector),
  outcome: oneOf(outcomes, search.outcome),
  reason: text(search.reason),
  cursor: cursorOf(search.cursor),
});

/** Filters of the list of devices. */
export interface DeviceFilters {
  q?: string | undefined;
  where?: string | undefined;
  cursor?: string | undefined;
}

export const readDeviceFilters = (search: Search): DeviceFilters => ({
  q: text(search.q),
  where:
    typeof search.where === 'object' && search.where !== null
      ? JSON.stringify(search.where)
      : text(search.where),
  cursor: cursorOf(search.cursor),
});

/** Cursors of the two lists on the page. */
export interface PeopleSearch {
  tokens?: string | undefined;
  sessions?: string | undefined;
}

export const readPeopleSearch = (search: Search): PeopleSearch => ({
  tokens: cursorOf(search.tokens),
  sessions: cursorOf(search.sessions),
});

/** Filters of the audit log. Times are in ISO 8601. */
export interface AuditFilters {
  app?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  cursor?: string | undefined;
}

export const readAuditFilters = (search: Search): AuditFilters => ({
  app: text(search.app),
  actor: text(search.actor),
  action: text(search.action),
  target: text(search.target),
  from: text(search.from),
  to: text(search.to),
  cursor: cursorOf(search.cursor),
});

const composeViews = ['form', 'json', 'curl'] as const;

/** View of the composed body. */
export type ComposeView = (typeof composeViews)[number];

export interface ComposeSearch {
  view?: ComposeView | undefined;
  /** Id of a push to copy. */
  from?: string | undefined;
  template?: string | undefined;
  /** True if the copy is incomplete. */
  part?: true | undefined;
  /** Condition on the devices, as JSON. */
  where?: string | undefined;
  /** Id of a recurring push whose content begins the draft. */
  definition?: string | undefined;
  /** Id of the recurring push that is changed, or `new`. Undefined for a single push. */
  repeat?: string | undefined;
}

export const readComposeSearch = (search: Search): ComposeSearch => ({
  view: oneOf(composeViews, search.view),
  from: text(search.from),
  template: text(search.template),
  part: search.part === true ? true : undefined,
  definition: cursorOf(search.definition),
  repeat: cursorOf(search.repeat),
  where:
    typeof search.where === 'object' && search.where !== null
      ? JSON.stringify(search.where)
      : text(search.where),
});

/** Filters of the list of users. */
export type UserFilters = DeviceFilters;

export const readUserFilters = readDeviceFilters;

const messageTabs = ['outbox', 'budgets', 'texts'] as const;

/** Tab of the messages page. */
export type MessageTab = (typeof messageTabs)[number];

export const messageKinds = ['sms', 'mail'] as const;
export const messageStates = ['waiting', 'sent', 'kept', 'failed'] as const;

export interface OutboxFilters {
  kind?: (typeof messageKinds)[number] | undefined;
  to?: string | undefined;
  state?: (typeof messageStates)[number] | undefined;
  cursor?: string | undefined;
}

export const readMessageSearch = (
  search: Search,
): OutboxFilters & { tab?: MessageTab | undefined } => ({
  tab: oneOf(messageTabs, search.tab),
  kind: oneOf(messageKinds, search.kind),
  to: text(search.to),
  state: oneOf(messageStates, search.state),
  cursor: text(search.cursor),
});

/** Reads the two pushes of a comparison. */
export const readCompareSearch = (
  search: Search,
): { a?: string | undefined; b?: string | undefined } => ({
  a: text(search.a),
  b: text(search.b),
});

/** Page of the scheduled pushes. */
export interface ScheduledSearch {
  cursor?: string | undefined;
}

export const readScheduledSearch = (search: Search): ScheduledSearch => ({
  cursor: text(search.cursor),
});

/** Page of the undelivered pushes, optionally of one reason. */
export interface UndeliveredSearch {
  reason?: string | undefined;
  cursor?: string | undefined;
}

export const readUndeliveredSearch = (search: Search): UndeliveredSearch => ({
  reason: text(search.reason),
  cursor: cursorOf(search.cursor),
});

/** Reads the days of a usage report, as `YYYY-MM-DD`. */
export const readUsageSearch = (
  search: Search,
): { from?: string | undefined; to?: string | undefined } => ({
  from: text(search.from),
  to: text(search.to),
});

export const readQuotaSearch = (search: Search): { day?: string | undefined } => ({
  day: text(search.day),
});

/** Reads the tab of the settings. */
export const readSettingsSearch = (search: Search): { tab?: string | undefined } => ({
  tab: text(search.tab),
});

/** Reads the queue whose jobs the page shows. */
export const readOperatingSearch = (search: Search): { queue?: string | undefined } => ({
  queue: text(search.queue),
});
