import {
  type MessageSource,
  type PushMessage,
  toPushMessage,
} from '../../../../connectors/contract/connector.ts';
import { classEffect } from '../../../../connectors/contract/message-class.ts';
import { connectors } from '../../../../connectors/registry.ts';
import { classesOf, type Profile, Router } from '../../../../connectors/routing.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import type { DeviceGroup } from '../../../../shared/db/tables/audience.ts';
import {
  estimateRows,
  explainStatement,
  type PlanNode,
  wholeAppIndexes,
} from '../../../../shared/db/tables/query-plans.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { type Json, type JsonObject, parseExactly } from '../../../../shared/domain/json.ts';
import { type ConnectorId, canonicalDeviceType } from '../../../../shared/domain/labels.ts';
import { type Translations, translated } from '../../../../shared/domain/pushes/languages.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import {
  givenRichMembers,
  type RichMember,
  richMembers,
} from '../../../../shared/domain/pushes/rich-content.ts';
import {
  type ForecastText,
  forecast,
  replyText,
  writeText,
} from '../../../../shared/domain/texts/texts.ts';
import { needsTableScan, targetQuery } from '../../../../shared/query/targets/targets.ts';
import { profileKey } from '../../../../shared/rules/admission.ts';

/** Devices that a push reaches through one connector. */
export interface ConnectorShare {
  devices: number;
  /** Number of devices by the profile that serves them. */
  profiles: Map<string, number>;
  /** Number of devices without a profile, by reason. */
  problems: Map<string, number>;
  /** Number of devices by type. The message is rendered for each type. */
  types: Map<string, number>;
}

export type Shares = Map<ConnectorId, ConnectorShare>;

/** Routes every group of devices in the same way as planning. */
export function splitByConnector(groups: DeviceGroup[], router: Router): Shares {
  const shares: Shares = new Map();
  for (const group of groups) {
    const route = router.route(group);
    const share = shares.get(route.connector) ?? emptyShare();
    shares.set(route.connector, share);
    share.devices += group.devices;
    addTo(share.types, canonicalDeviceType(group.device_type), group.devices);
    if (route.error !== undefined) addTo(share.problems, route.error, group.devices);
    else addTo(share.profiles, route.profile, group.devices);
  }
  return shares;
}

/**
 * Returns a text if devices would get the push through their vendor if the option `hybridPush` were
 * on.
 */
export function hybridTexts(
  groups: DeviceGroup[],
  router: Router,
  { app, profiles, push }: { app: App; profiles: Profile[]; push: MessageSource },
): ForecastText[] {
  if (app.options.hybridPush) return [];
  const other = new Router(
    { ...app, options: { ...app.options, hybridPush: true } },
    profiles,
    push,
  );
  const missed = groups.filter((group) => {
    const { connector, error } = other.route(group);
    return (
      connector !== 'channel' && error === undefined && router.route(group).connector === 'channel'
    );
  });
  const devices = missed.reduce((sum, group) => sum + group.devices, 0);
  return devices === 0 ? [] : [forecast('hybridOff', { devices })];
}

const emptyShare = (): ConnectorShare => ({
  devices: 0,
  profiles: new Map(),
  problems: new Map(),
  types: new Map(),
});

export function addTo(counts: Map<string, number>, key: string, n: number): void {
  counts.set(key, (counts.get(key) ?? 0) + n);
}

/** Returns the devices of each profile, by `profileKey`. */
export const devicesByProfile = (shares: Shares): Map<string, number> =>
  new Map(
    [...shares].flatMap(([connector, { profiles }]) =>
      [...profiles].map(([name, devices]) => [profileKey(connector, name), devices] as const),
    ),
  );

/**
 * Describes the share of a connector, with the message and its translations as rendered for its
 * most frequent device type.
 */
export function describeShare(
  id: ConnectorId,
  share: ConnectorShare,
  { push, profiles }: { push: MessageSource; profiles: readonly Profile[] },
): JsonObject {
  const { languages: translations, kind } = push.pushOrder;
  const [first = '_default', ...others] = mostFirst(share.profiles);
  const messages = [first, ...others].map((name) =>
    toPushMessage(push, { connector: id, classes: classesOf(profiles, id, name) }),
  );
  const [message = toPushMessage(push)] = messages;
  const problems = [...share.problems].map(([why, n]) => forecast('unserved', { why, n }));
  const types = mostFirst(share.types);
  const [type = ''] = types;
  const { error, ...request } = requestOf(id, message, type);
  if (error !== undefined) problems.unshift(forecast('unrendered', { why: error }));
  const languages = Object.entries(translations ?? {}).map(([language, members]) => {
    const data = translated(message.data, members);
    const { error: why, ...own } = requestOf(id, { ...message, data }, type);
    if (why !== undefined) problems.push(forecast('unrenderedIn', { language, why }));
    return [language, own];
  });
  return {
    devices: share.devices,
    profiles: Object.fromEntries(share.profiles),
    messageClass: classOfShare(id, messages, kind === 'transactional'),
    notShown: notShownOf(id, inAllLanguages(messages, translations), types),
    ...request,
    ...(translations ? { languages: Object.fromEntries(languages) } : {}),
    ...(problems.length === 0
      ? {}
      : {
          problem: problems.map((one) => writeText('forecasts', one, 'en')).join('; '),
          problems: problems.map(replyText),
        }),
  };
}

/** Returns the keys of counts, highest count first. */
const mostFirst = (counts: Map<string, number>): string[] =>
  [...counts].sort(([, a], [, b]) => b - a).map(([key]) => key);

/**
 * Returns the message class at a vendor, for the profile with most devices. What any profile lacks
 * counts as missing.
 */
function classOfShare(
  id: ConnectorId,
  messages: readonly PushMessage[],
  isTransactional: boolean,
): JsonObject {
  const effects = messages.map((message) => classEffect(id, message, { isTransactional }));
  const [{ name = null, dailyLimit = null } = {}] = effects;
  return { name, dailyLimit, missing: [...new Set(effects.flatMap(({ missing }) => missing))] };
}

/** Returns messages with their translations. */
const inAllLanguages = (
  messages: readonly PushMessage[],
  translations: Translations | undefined,
): PushMessage[] =>
  messages.flatMap((message) => [
    message,
    ...Object.values(translations ?? {}).map((members) => ({
      ...message,
      data: translated(message.data, members),
    })),
  ]);

/** Returns the rich content that devices of any type in the share do not show. */
function notShownOf(
  id: ConnectorId,
  messages: readonly PushMessage[],
  types: readonly string[],
): RichMember[] {
  const connector = connectors.get(id);
  const hidden = new Set<RichMember>();
  for (const message of messages)
    for (const type of types) {
      const given = givenRichMembers(message, type);
      for (const name of connector?.notShown?.(message, type) ?? [])
        if (given.includes(name)) hidden.add(name);
    }
  return richMembers.filter((name) => hidden.has(name));
}

/** Renders a message for one device type, in the form that its gateway gets. */
function requestOf(
  id: ConnectorId,
  message: PushMessage,
  type: string,
): { payload: Json; payloadBytes: number | null; error?: string } {
  const connector = connectors.get(id);
  const rendering = connector?.render(message, type);
  if (rendering?.ok !== true)
    return { payload: null, payloadBytes: null, ...(rendering ? { error: rendering.error } : {}) };
  const text = connector?.preview?.(rendering.payload) ?? JSON.stringify(rendering.payload);
  return { payload: parseExactly(text), payloadBytes: Buffer.byteLength(text) };
}

/** Number of rows that a query may read without an index before the reply warns. */
const maxUnindexedRows = 5000;

/** Part of the reply that shows the query plan. */
interface PlanReport {
  plan: string[];
  warning?: ForecastText;
}

/**
 * Returns PostgreSQL's plan for the statement that finds the recipients. Adds a warning if the
 * statement reads many installations without an index for the condition. `devices` is the number of
 * recipients.
 */
export async function planOf(
  tx: Handle,
  app: App,
  { pushOrder, nowMs, devices }: { pushOrder: PushOrder; nowMs: number; devices: number },
): Promise<PlanReport> {
  const query = targetQuery(app, pushOrder, { afterId: 0, nowMs });
  const root = await explainStatement(tx, query);
  const plan = linesOf(root, 0);
  const isNeeded = needsTableScan(pushOrder);
  const scan = findScan(root, isNeeded);
  if (!scan || !isNarrowed(pushOrder)) return { plan };
  const rows = await estimateRows(tx, app.appId, scan);
  const isWasteful = isNeeded || devices * 2 < rows;
  if (rows <= maxUnindexedRows || !isWasteful) return { plan };
  return {
    plan,
    warning: forecast('noIndex', { rows, devices }),
  };
}

/** Returns whether the push has a condition and so does not go to all devices. */
const isNarrowed = ({ target }: PushOrder): boolean =>
  target.kind === 'devices' ||
  (target.channels !== null && target.channels.length > 0) ||
  (typeof target.where === 'object' &&
    target.where !== null &&
    Object.keys(target.where).length > 0);

/** Writes a node and its children in the form of EXPLAIN, without the conditions. */
function linesOf(node: PlanNode, depth: number): string[] {
  const on = node.relation === undefined ? '' : ` on ${node.relation}`;
  const using = node.index === undefined ? '' : ` using ${node.index}`;
  const filter = node.hasFilter ? ', filtered' : '';
  const line = `${'  '.repeat(depth)}${node.type}${using}${on} (rows=${node.rows} cost=${node.cost}${filter})`;
  return [line, ...node.steps.flatMap((step) => linesOf(step, depth + 1))];
}

/**
 * Finds a node that reads a whole table, index or app. If no index serves a condition, PostgreSQL
 * may still use the index of custom members and read all of it.
 */
function findScan(node: PlanNode, isNeeded: boolean): PlanNode | undefined {
  if (node.type === 'Seq Scan' && node.relation === 'installation') return node;
  if (isNeeded && node.index === 'installation_fields') return node;
  if (node.index !== undefined && wholeAppIndexes.has(node.index) && node.hasFilter) return node;
  for (const step of node.steps) {
    const found = findScan(step, isNeeded);
    if (found) return found;
  }
  return undefined;
}
