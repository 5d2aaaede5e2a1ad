import type { MessageSource } from '../../../../connectors/contract/connector.ts';
import type { Profile } from '../../../../connectors/routing.ts';
import { utcDay } from '../../../../shared/clock.ts';
import { equalInConstantTime, sha256, type Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countScheduled } from '../../../../shared/db/tables/audience.ts';
import { listBreakers } from '../../../../shared/db/tables/gateways.ts';
import { readUsage } from '../../../../shared/db/tables/usage.ts';
import { type App, planLimits } from '../../../../shared/domain/apps/app.ts';
import { breakerIdOf } from '../../../../shared/domain/breaker.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type PushTiming, pushBodyBytesBelow } from '../../../../shared/domain/pushes/push.ts';
import {
  type Detail,
  type ForecastText,
  forecast,
  storedDetail,
} from '../../../../shared/domain/texts/texts.ts';
import { checkContent } from '../content-check.ts';
import type { Shares } from './audience.ts';

/** Body of a push in the form that the caller sent, with its size. */
export interface PushDraft {
  body: JsonObject;
  bodyBytes: number;
  prodHeader: 'dev' | 'prod' | undefined;
}

/** Values that the limits of a push depend on. */
export interface LimitInputs extends PushDraft {
  app: App;
  push: MessageSource;
  timing: PushTiming;
  profiles: Profile[];
  /** Text about a profile that the push needs and the app lacks. */
  missing: Detail | undefined;
  shares: Shares;
  devices: number;
  estimatedSeconds: number | null;
  nowMs: number;
  /** True if there are too many groups of recipients. `shares` then lacks the smallest groups. */
  isTruncated: boolean;
}

/**
 * Returns a text for each limit that would refuse, shorten or delay this push, refusals first.
 * Limits of rules are not included.
 */
export async function limitsOf(tx: Handle, inputs: LimitInputs): Promise<ForecastText[]> {
  return [
    ...bodySize(inputs),
    ...(await content(tx, inputs)),
    ...(inputs.missing === undefined
      ? []
      : [forecast('refused', { why: storedDetail(inputs.missing) })]),
    ...(await pending(tx, inputs)),
    ...(await breakers(tx, inputs)),
    ...(await dailyCap(tx, inputs)),
    ...flowControl(inputs),
    ...expiry(inputs),
    ...(inputs.isTruncated ? [forecast('tooManyKinds')] : []),
  ];
}

function bodySize({ bodyBytes, push }: LimitInputs): ForecastText[] {
  if (push.pushOrder.target.kind !== 'query' || bodyBytes < pushBodyBytesBelow) return [];
  return [forecast('bodyTooLarge', { bytes: bodyBytes, limit: pushBodyBytesBelow })];
}

async function content(tx: Handle, { app, profiles, push }: LimitInputs): Promise<ForecastText[]> {
  try {
    await checkContent(tx, { app, profiles }, push);
    return [];
  } catch (error) {
    if (error instanceof Refusal)
      return [
        forecast('refused', { why: error.detail ? storedDetail(error.detail) : error.message }),
      ];
    throw error;
  }
}

async function pending(tx: Handle, { app, timing }: LimitInputs): Promise<ForecastText[]> {
  if (timing.pushTime === null) return [];
  const { pending: limit } = planLimits[app.plan];
  const waiting = await countScheduled(tx, app.appId);
  if (waiting < limit) return [];
  return [forecast('tooManyScheduled', { waiting, plan: app.plan, limit })];
}

/** Lists the breakers of the push's profiles that are not closed. */
async function breakers(tx: Handle, { app, shares }: LimitInputs): Promise<ForecastText[]> {
  const served = [...shares].flatMap(([connector, { profiles }]) =>
    [...profiles.keys()].map((profile) => breakerIdOf({ connector, appId: app.appId, profile })),
  );
  const all = served.length === 0 ? [] : await listBreakers(tx);
  return all
    .filter(({ id, state }) => state !== 'closed' && served.includes(id))
    .map(({ connector, profile, state }) =>
      forecast('breakerOpen', { id: displayName(connector), profile, state }),
    );
}

async function dailyCap(
  tx: Handle,
  { app, devices, timing, nowMs }: LimitInputs,
): Promise<ForecastText[]> {
  const cap = app.options.dailyRecipientCap;
  const day = utcDay(timing.pushTime?.getTime() ?? nowMs);
  const { recipients: used } = await readUsage(tx, app.appId, day);
  const remaining = Math.max(0, cap - used);
  if (devices <= remaining) return [];
  return [forecast('dailyCap', { cap, left: remaining, day, over: devices - remaining })];
}

function flowControl({ body, push }: LimitInputs): ForecastText[] {
  const requested = body.flow_control;
  const used = push.pushOrder.flowControl;
  if (typeof requested !== 'number' || used === null || requested >= used) return [];
  return [forecast('slowFlowControl', { asked: requested, used })];
}

function expiry({ push, timing, nowMs, estimatedSeconds }: LimitInputs): ForecastText[] {
  const startMs = timing.pushTime?.getTime() ?? nowMs;
  const lifeMs = push.expiresAt.getTime() - startMs;
  const end = push.expiresAt.toISOString();
  if (lifeMs <= 0) return [forecast('expiredBefore', { until: end })];
  if (estimatedSeconds === null || estimatedSeconds * 1000 <= lifeMs) return [];
  return [forecast('expiredDuring', { until: end })];
}

/** Body of a push that a dry run explained. */
interface SealedBody {
  appId: string;
  body: JsonObject;
}

/**
 * Signs the number of devices of a dry run together with its body: `<devices>.<HMAC>` with
 * CARILLON_SECRET. The server stores nothing, so every api process can verify the seal, even after
 * a restart.
 */
export class DryRunSeal {
  readonly #vault: Vault;

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  of(sealed: SealedBody, devices: number): string {
    return `${devices}.${this.#vault.derive(contextOf(sealed, devices))}`;
  }

  /** Returns the number of devices. Returns undefined if the text is not a seal of this body. */
  read(sealed: SealedBody, text: string): number | undefined {
    const [, digits = '', hmac = ''] = /^(\d{1,15})\.([\w-]{43})$/.exec(text) ?? [];
    if (digits === '') return undefined;
    const devices = Number(digits);
    const hmacs = this.#vault.derivedBy(contextOf(sealed, devices));
    return hmacs.some((one) => equalInConstantTime(one, hmac)) ? devices : undefined;
  }
}

const contextOf = ({ appId, body }: SealedBody, devices: number): string =>
  `dry run ${appId} ${sha256(canonicalText(body)).toString('base64url')} ${devices}`;

/** Writes JSON with sorted members, so that equal objects have equal texts. */
function canonicalText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`).join(',')}}`;
}
