import { z } from 'zod';
import type { MessageSource } from '../../../connectors/connector.ts';
import type { Profile } from '../../../connectors/routing.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { countPending } from '../../../shared/db/tables/audience.ts';
import { readUsage } from '../../../shared/db/tables/usage.ts';
import { type App, planLimits } from '../../../shared/domain/app.ts';
import { Refusal } from '../../../shared/domain/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { type PushTiming, pushBodyBytesBelow } from '../../../shared/domain/push.ts';
import { checkContent } from '../pushes.ts';
import type { Share } from './audience.ts';

/** Devices of one push under a development certificate (push.md "Limits" 10). */
const maxDevicesOfDevCertificate = 20_000;

/** The body of a push as it was sent, with its size. */
export interface Draft {
  body: JsonObject;
  bodyBytes: number;
  prodHeader: 'dev' | 'prod' | undefined;
}

export interface Inputs extends Draft {
  app: App;
  push: MessageSource;
  timing: PushTiming;
  profiles: Profile[];
  /** Why a profile that the push needs is missing. */
  missing: string | undefined;
  shares: Map<ConnectorId, Share>;
  devices: number;
  estimatedSeconds: number | null;
  nowMs: number;
  /** The kinds of devices were too many to look at all of them. */
  isCut: boolean;
}

/** Every limit that would refuse, cut or stretch this push, as sentences; the refusals first. */
export async function limitsOf(tx: Handle, inputs: Inputs): Promise<string[]> {
  return [
    ...bodySize(inputs),
    ...content(inputs),
    ...(inputs.missing === undefined ? [] : [`The push would be refused: ${inputs.missing}`]),
    ...(await pending(tx, inputs)),
    ...devCertificate(inputs),
    ...(await dailyCap(tx, inputs)),
    ...flowControl(inputs),
    ...expiry(inputs),
    ...(inputs.isCut ? ['The devices are of too many kinds: the smallest are missing by connector.'] : []),
  ];
}

function bodySize({ bodyBytes, push }: Inputs): string[] {
  if (push.order.target.kind !== 'query' || bodyBytes < pushBodyBytesBelow) return [];
  return [`The body has ${bodyBytes} bytes and would be refused: it must be under ${pushBodyBytesBelow}.`];
}

function content({ push }: Inputs): string[] {
  try {
    checkContent(push.order, push);
    return [];
  } catch (error) {
    if (error instanceof Refusal) return [`The push would be refused: ${error.message}`];
    throw error;
  }
}

async function pending(tx: Handle, { app, timing }: Inputs): Promise<string[]> {
  if (timing.pushTime === null) return [];
  const { pending: limit } = planLimits[app.plan];
  const waiting = await countPending(tx, app.appId);
  if (waiting < limit) return [];
  return [
    `${waiting} scheduled pushes are pending, and a ${app.plan} app may have ${limit}: it would be refused.`,
  ];
}

const certificateOf = z.looseObject({
  auth: z.literal('certificate'),
  environment: z.enum(['prod', 'dev']).optional(),
});

function devCertificate({ profiles, shares, push, devices }: Inputs): string[] {
  if (devices <= maxDevicesOfDevCertificate) return [];
  const used = shares.get('apns')?.profiles;
  const isDev = profiles.some(({ connector, name, credentials }) => {
    if (connector !== 'apns' || !used?.has(name)) return false;
    const parsed = certificateOf.safeParse(credentials);
    return parsed.success && (parsed.data.environment ?? push.order.prod) === 'dev';
  });
  const sentence = 'dev profile disabled for massive push';
  return isDev
    ? [`A development certificate serves at most ${maxDevicesOfDevCertificate} devices: ${sentence}.`]
    : [];
}

async function dailyCap(tx: Handle, { app, devices, timing, nowMs }: Inputs): Promise<string[]> {
  const cap = app.options.dailyRecipientCap;
  const day = new Date(timing.pushTime?.getTime() ?? nowMs).toISOString().slice(0, 10);
  const { recipients: used } = await readUsage(tx, app.appId, day);
  const left = Math.max(0, cap - used);
  if (devices <= left) return [];
  return [
    `The daily recipient cap of ${cap} leaves ${left} on ${day}: ${devices - left} devices would be counted capped.`,
  ];
}

function flowControl({ body, push }: Inputs): string[] {
  const asked = body.flow_control;
  const used = push.order.flowControl;
  if (typeof asked !== 'number' || used === null || asked >= used) return [];
  return [`flow_control ${asked} counts as ${used}, the least there is.`];
}

function expiry({ push, timing, nowMs, estimatedSeconds }: Inputs): string[] {
  const startMs = timing.pushTime?.getTime() ?? nowMs;
  const lifeMs = push.expiresAt.getTime() - startMs;
  const end = push.expiresAt.toISOString();
  if (lifeMs <= 0) return [`It expires at ${end}, before it is sent: every device would be counted expired.`];
  if (estimatedSeconds === null || estimatedSeconds * 1000 <= lifeMs) return [];
  return [`It expires at ${end}, before all are sent to: those who wait then would be counted expired.`];
}
