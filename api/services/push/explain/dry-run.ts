import { Router } from '../../../../connectors/routing.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countAudience, countDevices, maxGroups } from '../../../../shared/db/tables/audience.ts';
import { countEndedTokens } from '../../../../shared/db/tables/live-activities.ts';
import { channelRoutingKey, parseRoutingKey } from '../../../../shared/db/tables/routing-keys.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { shownActivity } from '../../../../shared/domain/pushes/live-activity.ts';
import {
  type PushOrder,
  type PushRequest,
  parsePush,
  parsePushToDevices,
  pushBodyBytesBelow,
} from '../../../../shared/domain/pushes/push.ts';
import { withPushId } from '../../../../shared/domain/pushes/push-events.ts';
import { filledWithDefaults } from '../../../../shared/domain/pushes/variables.ts';
import {
  type Detail,
  detail,
  forecast,
  replyDetail,
  replyText,
  writeText,
} from '../../../../shared/domain/texts/texts.ts';
import { withoutCql } from '../../../../shared/query/cql/select.ts';
import {
  appleCondition,
  checkTargets,
  Params,
  targetsOf,
  updateTokenSince,
} from '../../../../shared/query/targets/targets.ts';
import type { Viewer } from '../../../../shared/query/viewer.ts';
import type { ForecastScope, Rule, RuleForecast } from '../../../../shared/rules/rule.ts';
import { rulesOf } from '../../../../shared/rules/rules.ts';
import type { ApiDeps } from '../../deps.ts';
import { operatorViewer } from '../../operator/access/member-rights.ts';
import type { ReadAudit } from '../../operator/audit/audit.ts';
import { checkContent } from '../content-check.ts';
import { expiryOf, type PushSender, viewerOf } from '../pushes.ts';
import { MissingProfiles } from '../unserved-devices.ts';
import {
  describeShare,
  devicesByProfile,
  hybridTexts,
  planOf,
  splitByConnector,
} from './audience.ts';
import { estimateDuration, readForecast } from './forecast.ts';
import { DryRunSeal, type LimitInputs, limitsOf, type PushDraft } from './limits.ts';

/** Time limit of the count. After it, the caller gets 124. */
const countTimeoutMs = 30_000;

/**
 * Maximum size of a draft that is explained. It is larger than the limit of a push, so that the dry
 * run can report a body that is slightly too large. Larger drafts would take long to render for all
 * gateways.
 */
const maxDraftBytes = 16 * pushBodyBytesBelow;

/** Share by which the audience may change between dry run and push. */
const allowedShift = 0.05;

/** Describes what a push would do. All statements run in one READ ONLY transaction. */
export class DryRunService {
  readonly #deps: ApiDeps;
  readonly #missingProfiles: MissingProfiles;
  readonly #seal: DryRunSeal;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
    this.#missingProfiles = new MissingProfiles(deps);
    this.#seal = new DryRunSeal(deps.vault);
  }

  /**
   * Explains the body of POST /1.1/push, or of POST /1.1/push/devices if it has `device_ids`.
   * Throws as the push call if the body is malformed, and 403 if the role may not use the
   * condition. Limits that would refuse or shorten the push are texts in the reply.
   */
  async explain(operator: Operator, appId: string, draft: PushDraft): Promise<JsonObject> {
    const app = await this.#deps.appCache.app(appId);
    if (!app) throw refuse('notFound', detail('noApp'));
    const nowMs = this.#deps.clock.now();
    const viewer = operatorViewer(operator, appId);
    const parsed = parseDraft(viewer, draft, nowMs);
    const request = { ...parsed, pushOrder: withPushId(app.options, parsed.pushOrder) };
    const measured = await this.#measure(app, { ...draft, request, nowMs });
    await this.#reads.record({
      action: 'push.explain',
      appId,
      target: appId,
      members: viewer.personal,
    });
    const report = {
      ...measured,
      digest: this.#seal.of({ appId, body: draft.body }, measured.devices),
    };
    return withWarnings(report, request.warnings);
  }

  /**
   * Explains a Live Activity push that another service has built. Adds what it would start, update
   * or end, and the devices with and without a token. Throws as the push if its content is refused.
   */
  async explainActivity(
    { app, isMaster, viewer, prodHeader }: PushSender,
    request: PushRequest,
  ): Promise<JsonObject> {
    const nowMs = this.#deps.clock.now();
    const { pushOrder, warnings } = request;
    const { liveActivity, data } = pushOrder;
    checkTargets(pushOrder, viewer ?? viewerOf(app, isMaster));
    const profiles = await this.#deps.appCache.profiles(app.appId);
    await checkContent(this.#deps.db, { app, profiles }, this.#pushOf(request, nowMs));
    const draft = { body: {}, bodyBytes: 0, prodHeader };
    const measured = await this.#measure(app, { ...draft, request, nowMs });
    const withoutToken = await this.#withoutToken(app, pushOrder, nowMs);
    const limits = [
      ...(withoutToken > 0 ? [forecast('activityWithoutToken', { devices: withoutToken })] : []),
      ...(data['apns-priority'] === 10 ? [forecast('activityBudget')] : []),
    ];
    return withWarnings(
      {
        ...measured,
        limits: [...measured.limits, ...limits.map((one) => writeText('forecasts', one, 'en'))],
        texts: { ...measured.texts, limits: [...measured.texts.limits, ...limits.map(replyText)] },
        dryRun: true,
        withToken: measured.devices,
        withoutToken,
        liveActivity: liveActivity ? shownActivity(liveActivity, data) : null,
      },
      warnings,
    );
  }

  /**
   * Counts the devices that would get the push if they had a token: Apple devices that match a
   * start, and devices whose update token has ended.
   */
  async #withoutToken(app: App, pushOrder: PushOrder, nowMs: number): Promise<number> {
    const target = pushOrder.liveActivity?.target;
    if (!target || target.kind === 'channel') return 0;
    const { appId } = app;
    return this.#read(app, async (tx) => {
      if (target.kind === 'activity') {
        const tokens = { appId, kind: 'update', name: target.name } as const;
        return countEndedTokens(tx, tokens, updateTokenSince(nowMs));
      }
      const params = new Params();
      const text = appleCondition(app, pushOrder, { params, nowMs });
      return countDevices(tx, { text, values: params.values });
    });
  }

  #read<T>(app: App, work: (tx: Handle) => Promise<T>): Promise<T> {
    const { queries } = this.#deps;
    return queries.read({ app, isMaster: true }, work, { timeoutMs: countTimeoutMs });
  }

  #pushOf({ pushOrder, timing }: PushRequest, nowMs: number) {
    const createdAt = new Date(nowMs);
    const expiresAt = expiryOf(timing, timing.pushTime ?? createdAt);
    return { objectId: newPushObjectId(), pushOrder, expiresAt, createdAt };
  }

  async #measure(
    app: App,
    { request, nowMs, ...draft }: PushDraft & { request: PushRequest; nowMs: number },
  ) {
    const push = this.#pushOf(request, nowMs);
    // Needs its own connection, so it runs before this call takes one.
    const missing = await this.#missingProfiles.find(app, push.pushOrder);
    const profiles = await this.#deps.appCache.profiles(app.appId);
    const inputs = { ...draft, app, push, timing: request.timing, profiles, missing, nowMs };
    return this.#read(app, (tx) => measure(tx, inputs));
  }

  /**
   * Compares the audience of a push with its dry run, by the `digest` in the dry run's reply.
   * Returns undefined if the audience changed by at most 5 %. Otherwise returns the numbers, with a
   * digest for the current audience. A digest of another body counts as no dry run. Throws as
   * `explain`.
   */
  async compare(
    app: App,
    { viewer, draft, digest }: { viewer: Viewer; draft: PushDraft; digest: string },
  ): Promise<MovedAudience | undefined> {
    const { appId } = app;
    const nowMs = this.#deps.clock.now();
    const { pushOrder } = parseDraft(viewer, draft, nowMs);
    const sealed = { appId, body: draft.body };
    const explained = this.#seal.read(sealed, digest);
    const devices = await this.#read(app, (tx) =>
      countDevices(tx, targetsOf(app, pushOrder, nowMs)),
    );
    const isSame =
      explained !== undefined && Math.abs(devices - explained) <= explained * allowedShift;
    return isSame ? undefined : { devices, explained, digest: this.#seal.of(sealed, devices) };
  }
}

/**
 * Audience that differs from the dry run. `explained` is undefined without a dry run of this body.
 */
export interface MovedAudience {
  devices: number;
  explained: number | undefined;
  digest: string;
}

/**
 * Parses the body of either push call and checks its condition. Throws error 403 if `viewer` may
 * not use the condition.
 */
export function parseDraft(
  viewer: Viewer,
  { body, bodyBytes, prodHeader }: PushDraft,
  nowMs: number,
): PushRequest {
  if (bodyBytes > maxDraftBytes && !('device_ids' in body))
    throw refuse('tooLarge', detail('bodyBelow', { limit: pushBodyBytesBelow }));
  const parse = 'device_ids' in body ? parsePushToDevices : parsePush;
  const request = parse(withoutCql(body), prodHeader, nowMs);
  checkTargets(request.pushOrder, viewer);
  return request;
}

/** Adds the warnings of a push to its dry run. */
function withWarnings<T extends { texts: object }>(report: T, warnings: readonly Detail[]) {
  if (warnings.length === 0) return report;
  return {
    ...report,
    warnings: warnings.map((one) => writeText('details', one, 'en')),
    texts: { ...report.texts, warnings: warnings.map(replyDetail) },
  };
}

/** Inputs of a dry run. */
export type DryRunInputs = Omit<
  LimitInputs,
  'shares' | 'devices' | 'estimatedSeconds' | 'isTruncated'
>;

async function measure(tx: Handle, inputs: DryRunInputs) {
  const { app, push, nowMs } = inputs;
  const { pushOrder } = push;
  const { texts, forecast, ...audience } = await measureAudience(tx, inputs);
  const { plan, warning } = await planOf(tx, app, { pushOrder, nowMs, devices: audience.devices });
  return {
    ...audience,
    plan,
    ...(warning === undefined ? {} : { warning: writeText('forecasts', warning, 'en') }),
    texts: { ...texts, warning: warning === undefined ? null : replyText(warning) },
    forecast,
  };
}

/** Counts the recipients of a push by connector, and estimates its limits and duration. */
export async function measureAudience(tx: Handle, inputs: DryRunInputs) {
  const { app, push, profiles, timing, nowMs } = inputs;
  const router = new Router(app, profiles, push);
  const pushOrder = filledWithDefaults(push.pushOrder);
  const targets = targetsOf(app, pushOrder, nowMs);
  const { groups, devices } =
    pushOrder.liveActivity?.target.kind === 'channel'
      ? { groups: [{ ...parseRoutingKey(channelRoutingKey), devices: 1 }], devices: 1 }
      : await countAudience(tx, targets);
  const shares = splitByConnector(groups, router);
  const byProfile = devicesByProfile(shares);
  const { estimatedSeconds, pace } = await estimateDuration(tx, app, { pushOrder, byProfile });
  const isTruncated = groups.length >= maxGroups;
  const scope = { tx, targets, devices, byProfile, pushTime: timing.pushTime };
  const ruled = await forecastRules(rulesOf({ app, push, router, nowMs }), scope);
  const limits = [
    ...(await limitsOf(tx, { ...inputs, estimatedSeconds, shares, devices, isTruncated })),
    ...ruled.limits,
    ...hybridTexts(groups, router, inputs),
  ];
  const content = { push: { ...push, pushOrder }, profiles };
  const connectors = [...shares].map(([id, share]) => [id, describeShare(id, share, content)]);
  const audience = { app, devices, byProfile, profiles, nowMs, timing };
  const forecast = await readForecast(tx, audience);
  return {
    devices,
    connectors: Object.fromEntries(connectors),
    limits: limits.map((one) => writeText('forecasts', one, 'en')),
    estimatedSeconds,
    ...ruled.members,
    pace: writeText('forecasts', pace, 'en'),
    texts: { limits: limits.map(replyText), pace: replyText(pace) },
    forecast,
  };
}

/** Collects the forecasts of the push's rules. */
async function forecastRules(
  rules: readonly Rule[],
  scope: ForecastScope,
): Promise<Required<RuleForecast>> {
  const all: Required<RuleForecast> = { limits: [], members: {} };
  for (const rule of rules) {
    const { limits = [], members } = (await rule.forecast?.(scope)) ?? {};
    all.limits.push(...limits);
    Object.assign(all.members, members);
  }
  return all;
}
