import { type MessageSource, toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { listDeviceTypes } from '../../../shared/db/tables/installations/audience.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import {
  type ConnectorId,
  dataKeyOwners,
  isAppleDeviceType,
  isConnectorId,
  vendorConnector,
} from '../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../shared/domain/pushes/push.ts';

/** A connector, and the device type that it renders for. */
interface RenderTarget {
  connector: ConnectorId;
  deviceType: string;
}

const ios: RenderTarget = { connector: 'apns', deviceType: 'ios' };
const android: RenderTarget = { connector: 'channel', deviceType: 'android' };

/**
 * Refuses with 1 what no gateway that the push could reach takes: no alert for Android, nothing to show for iOS, a
 * message that is too large. Where only some cannot take it the push is accepted and those recipients are counted
 * with the reason (protocol/push.md#sizes-of-vendors: told before anything is sent).
 */
export async function checkContent(db: Handle, app: App, push: MessageSource): Promise<void> {
  const problem = problemOf(push, renderTargetsOf(app, push.pushOrder));
  if (problem === null || (await hasOtherRenderTarget(db, app, push))) return;
  throw refuse('invalidParameter', `data: ${problem}`);
}

/** Why none of them takes the message, as the first of them tells it; null when one does, or none is known. */
function problemOf(push: MessageSource, targets: RenderTarget[]): string | null {
  const message = toPushMessage(push);
  const problems: string[] = [];
  for (const { connector, deviceType } of targets) {
    const rendering = connectors.get(connector)?.render(message, deviceType);
    // What a gateway has nothing for is dropped and told on the record (protocol/push.md#pass-through).
    if (!rendering || rendering.ok || rendering.outcome === 'dropped') return null;
    problems.push(rendering.error);
  }
  return problems[0] ?? null;
}

function renderTargetsOf({ options }: App, { data, target }: PushOrder): RenderTarget[] {
  if (target.kind === 'query') {
    const vendors = options.hybridPush ? vendorsNamedIn(data) : [];
    return withDeviceType(target.where, [ios, android, ...vendors]);
  }
  if (target.deviceType === 'ios') return [ios];
  const vendor = target.vendor === null ? undefined : vendorConnector(target.vendor);
  if (target.vendor !== null && !vendor)
    throw refuse('invalidParameter', 'vendor: not a vendor that this service knows.');
  return [vendor ? { connector: vendor, deviceType: 'android' } : android];
}

/** Makers that the push has an object for: it may hold a whole message, which needs no alert. */
function vendorsNamedIn(data: JsonObject): RenderTarget[] {
  const owners = Object.keys(data).map((name) => dataKeyOwners.get(name) ?? '');
  return owners.filter(isConnectorId).map((connector) => ({ connector, deviceType: 'android' }));
}

/** Narrows by a plain `deviceType` condition, so that content for one kind of devices is judged as such. */
function withDeviceType(where: unknown, all: RenderTarget[]): RenderTarget[] {
  const wanted = deviceTypeIn(where);
  if (wanted === undefined) return all;
  const type = isAppleDeviceType(wanted) ? ios.deviceType : wanted;
  return all.filter(({ deviceType }) => deviceType === type);
}

function deviceTypeIn(where: unknown): string | undefined {
  const wanted =
    typeof where === 'object' && where !== null && 'deviceType' in where ? where.deviceType : undefined;
  return typeof wanted === 'string' ? wanted : undefined;
}

/**
 * Whether the app has devices of further types (`web`, …), whose content may be anything: then a push to all devices
 * with members of its own is for them. Asked only when the usual types refuse.
 */
async function hasOtherRenderTarget(db: Handle, app: App, push: MessageSource): Promise<boolean> {
  const { data, target } = push.pushOrder;
  if (target.kind !== 'query' || deviceTypeIn(target.where) !== undefined || !hasOwnMembers(data))
    return false;
  const types = await listDeviceTypes(db, app.appId);
  return types.some(
    (deviceType) =>
      deviceType !== 'android' &&
      !isAppleDeviceType(deviceType) &&
      problemOf(push, [{ connector: 'channel', deviceType }]) === null,
  );
}

/** Members beside an empty alert or title and the objects for one kind of devices. */
const hasOwnMembers = (data: JsonObject): boolean =>
  Object.entries(data).some(
    ([name, value]) =>
      !(dataKeyOwners.has(name) && isJsonObject(value)) &&
      !((name === 'alert' || name === 'title') && (value === '' || value === null)),
  );
