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
import { orderIn } from '../../../shared/domain/pushes/languages.ts';
import type { PushOrder } from '../../../shared/domain/pushes/push.ts';
import { filledWithDefaults } from '../../../shared/domain/pushes/variables.ts';

/** Connector, and the device type that it renders a message for. */
interface RenderTarget {
  connector: ConnectorId;
  deviceType: string;
}

const ios: RenderTarget = { connector: 'apns', deviceType: 'ios' };
const android: RenderTarget = { connector: 'channel', deviceType: 'android' };

/**
 * Throws 1 when no gateway that the push could reach accepts its content: no alert for Android, nothing to show on iOS,
 * too large. When only some gateways reject it, the push is accepted and their recipients are counted with the reason
 * (protocol/push.md#sizes-of-vendors).
 */
export async function checkContent(db: Handle, app: App, push: MessageSource): Promise<void> {
  // The content was checked for the devices of the first push.
  if (push.pushOrder.redrive) return;
  const order = filledWithDefaults(push.pushOrder);
  const reason = await rejectionOf(db, app, { ...push, pushOrder: order });
  if (reason !== null) throw refuse('invalidParameter', `data: ${reason}`);
  for (const language of Object.keys(order.languages ?? {})) {
    const pushOrder = orderIn(order, language);
    const why = await rejectionOf(db, app, { ...push, pushOrder });
    if (why !== null) throw refuse('invalidParameter', `languages.${language}: ${why}`);
  }
}

/** Returns the reason for which no gateway accepts the content; null if one does. */
async function rejectionOf(db: Handle, app: App, push: MessageSource): Promise<string | null> {
  const message = rejectionMessage(push, renderTargetsOf(app, push.pushOrder));
  return message === null || (await hasOtherRenderTarget(db, app, push)) ? null : message;
}

/**
 * Returns the first connector's reason when all of them reject the message; null when one accepts it or the list is
 * empty.
 */
function rejectionMessage(push: MessageSource, targets: RenderTarget[]): string | null {
  const message = toPushMessage(push);
  const reasons: string[] = [];
  for (const { connector, deviceType } of targets) {
    const rendering = connectors.get(connector)?.render(message, deviceType);
    // A message without an object for this gateway is counted as dropped on the record (protocol/push.md#pass-through).
    if (!rendering || rendering.ok || rendering.outcome === 'dropped') return null;
    reasons.push(rendering.error);
  }
  return reasons[0] ?? null;
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

/** Returns the vendors that the push has an object for: such an object may hold a whole message without an alert. */
function vendorsNamedIn(data: JsonObject): RenderTarget[] {
  const owners = Object.keys(data).map((name) => dataKeyOwners.get(name) ?? '');
  return owners.filter(isConnectorId).map((connector) => ({ connector, deviceType: 'android' }));
}

/** Keeps the targets that match a plain `deviceType` condition, so that content for one type is checked for that type. */
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
 * Tells whether the app has devices of other types (`web`, …) that can take this content: their messages may hold any
 * members. Runs only when the usual types reject the message.
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
      rejectionMessage(push, [{ connector: 'channel', deviceType }]) === null,
  );
}

/** Tells whether the data has members beside an empty alert or title and the objects for one device type. */
const hasOwnMembers = (data: JsonObject): boolean =>
  Object.entries(data).some(
    ([name, value]) =>
      !(dataKeyOwners.has(name) && isJsonObject(value)) &&
      !((name === 'alert' || name === 'title') && (value === '' || value === null)),
  );
