import { type MessageSource, toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { classesOf, type Profile } from '../../../connectors/routing.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { listDeviceTypes } from '../../../shared/db/tables/audience.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import {
  type ConnectorId,
  dataKeyOwners,
  isAppleDeviceType,
  isConnectorId,
  labelsOf,
  needsHybridPush,
  vendorConnector,
} from '../../../shared/domain/labels.ts';
import { orderIn } from '../../../shared/domain/pushes/languages.ts';
import { originalTarget, type PushOrder } from '../../../shared/domain/pushes/push.ts';
import { filledWithDefaults } from '../../../shared/domain/pushes/variables.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';

/** Connector, and the device type for which it renders a message. */
interface RenderTarget {
  connector: ConnectorId;
  deviceType: string;
}

const ios: RenderTarget = { connector: 'apns', deviceType: 'ios' };
const android: RenderTarget = { connector: 'channel', deviceType: 'android' };

/** App of a push, and its profiles, whose message classes change the content. */
interface ContentScope {
  app: App;
  profiles: readonly Profile[];
}

/**
 * Throws error 1 if a gateway that the push can reach would refuse its content for every device
 * (protocol/push.md#content). There are two cases:
 *
 * - A member of that gateway is invalid. The error contains the path of the member.
 * - No gateway can send the content: no alert for Android, nothing to show on iOS, or too large.
 *
 * If valid content suits only some gateways, the push is accepted. The recipients of the other
 * gateways are counted with the reason.
 */
export async function checkContent(
  db: Handle,
  { app, profiles }: ContentScope,
  push: MessageSource,
): Promise<void> {
  // The content was already checked for the devices of the first push.
  if (push.pushOrder.redrive) return;
  // A recall without a replacement has no content.
  if (push.pushOrder.recall && !push.pushOrder.recall.hasReplacement) return;
  const target = originalTarget(push.pushOrder);
  const order = filledWithDefaults({ ...push.pushOrder, target });
  const scope = { app, profiles };
  const reason = await rejectionOf(db, scope, { ...push, pushOrder: order });
  if (reason !== null) throw refuse('invalidParameter', detail('dataRefused', { why: reason }));
  for (const language of Object.keys(order.languages ?? {})) {
    const pushOrder = orderIn(order, language);
    const why = await rejectionOf(db, scope, { ...push, pushOrder });
    if (why !== null)
      throw refuse('invalidParameter', detail('translationRefused', { language, why }));
  }
}

/** Returns the reason why the content is refused. Returns null if it is accepted. */
async function rejectionOf(
  db: Handle,
  { app, profiles }: ContentScope,
  push: MessageSource,
): Promise<string | null> {
  const targets = renderTargetsOf(app, push.pushOrder);
  const judged = judge(push, profiles, targets);
  const mistakes = judged.filter(({ verdict }) => verdict === 'mistake');
  const [mistake] = mistakes.length > 0 ? await reachable(db, app, { push, judged: mistakes }) : [];
  if (mistake) return mistake.error;
  const others = judged.filter(({ verdict }) => verdict !== 'mistake');
  const [first] = others;
  if (!first || others.some(({ verdict }) => verdict === 'taken')) return null;
  return (await hasOtherRenderTarget(db, app, push)) ? null : first.error;
}

interface Judged {
  target: RenderTarget;
  /**
   * `taken` includes a message without an object for this gateway. Such a message is counted as
   * dropped (protocol/push.md#pass-through).
   */
  verdict: 'taken' | 'misfit' | 'mistake';
  error: string;
}

/** Renders a push for each target and returns the verdicts. */
function judge(
  push: MessageSource,
  profiles: readonly Profile[],
  targets: RenderTarget[],
): Judged[] {
  const { target: sent } = push.pushOrder;
  const name = (sent.kind === 'devices' && sent.deviceProfile) || '_default';
  return targets.map((target) => {
    const { connector } = target;
    const [classes] = labelsOf(connector).flatMap((one) => classesOf(profiles, one, name) ?? []);
    const message = toPushMessage(push, { connector, classes });
    const rendering = connectors.get(connector)?.render(message, target.deviceType);
    if (!rendering || rendering.ok || rendering.outcome === 'dropped')
      return { target, verdict: 'taken', error: '' };
    return { target, verdict: rendering.isMisfit ? 'misfit' : 'mistake', error: rendering.error };
  });
}

/**
 * Keeps the targets that the push can reach. An app without Apple devices may use names of Apple's
 * members for its own members, unless the push names Apple device types. In an app without devices,
 * all targets count as reachable.
 */
async function reachable(
  db: Handle,
  app: App,
  { push: { pushOrder }, judged }: { push: MessageSource; judged: Judged[] },
): Promise<Judged[]> {
  const { liveActivity, target } = pushOrder;
  if (liveActivity || target.kind !== 'query' || wantedTypes(target.where)) return judged;
  const types = await listDeviceTypes(db, app.appId);
  if (types.length === 0) return judged;
  const hasApple = types.some(isAppleDeviceType);
  const hasOther = types.some((type) => !isAppleDeviceType(type));
  return judged.filter(({ target }) => (target.connector === 'apns' ? hasApple : hasOther));
}

function renderTargetsOf(
  { options }: App,
  { data, target, liveActivity }: PushOrder,
): RenderTarget[] {
  if (liveActivity) return [ios];
  if (target.kind === 'query') {
    const vendors = vendorsNamedIn(data).filter(
      (connector) => options.hybridPush || !needsHybridPush(connector),
    );
    const deviceTypes = wantedTypes(target.where) ?? [ios.deviceType, android.deviceType];
    return deviceTypes.flatMap((deviceType) =>
      isAppleDeviceType(deviceType)
        ? [ios]
        : [android.connector, ...vendors].map((connector) => ({ connector, deviceType })),
    );
  }
  if (target.deviceType === 'ios') return [ios];
  const vendor = target.vendor === null ? undefined : vendorConnector(target.vendor);
  if (target.vendor !== null && !vendor) throw refuse('invalidParameter', detail('unknownVendor'));
  return [vendor ? { connector: vendor, deviceType: 'android' } : android];
}

/**
 * Returns the vendors for which the push has an object. Such an object may contain a whole message
 * without an alert.
 */
function vendorsNamedIn(data: JsonObject): ConnectorId[] {
  const owners = Object.entries(data).map(([name, value]) =>
    isJsonObject(value) ? (dataKeyOwners.get(name) ?? '') : '',
  );
  return [...new Set(owners.filter(isConnectorId))];
}

/** Maximum number of device types of a condition that are checked. */
const maxWanted = 10;

/**
 * Returns the device types of a simple condition on `deviceType`. Content for one type is then
 * checked only for this type.
 */
function wantedTypes(where: unknown): string[] | undefined {
  const deviceType = isJsonObject(where) ? where.deviceType : undefined;
  const listed =
    isJsonObject(deviceType) && Object.keys(deviceType).length === 1
      ? (deviceType.$in ?? deviceType.$eq)
      : deviceType;
  const types = Array.isArray(listed) ? listed : [listed];
  const names = types.filter((type) => typeof type === 'string');
  return names.length === types.length && names.length <= maxWanted
    ? [...new Set(names)]
    : undefined;
}

/**
 * Returns whether the app has devices of other types (`web`, …) that accept this content, because
 * their messages may contain any members. Called only if the usual types reject the message.
 */
async function hasOtherRenderTarget(db: Handle, app: App, push: MessageSource): Promise<boolean> {
  const { data, target, liveActivity } = push.pushOrder;
  if (liveActivity || target.kind !== 'query' || wantedTypes(target.where) || !hasOwnMembers(data))
    return false;
  const types = await listDeviceTypes(db, app.appId);
  return types.some(
    (deviceType) =>
      deviceType !== 'android' &&
      !isAppleDeviceType(deviceType) &&
      judge(push, [], [{ connector: 'channel', deviceType }]).every(
        ({ verdict }) => verdict === 'taken',
      ),
  );
}

/**
 * Returns whether the data contains members other than an empty alert or title and objects for one
 * device type.
 */
const hasOwnMembers = (data: JsonObject): boolean =>
  Object.entries(data).some(
    ([name, value]) =>
      !(dataKeyOwners.has(name) && isJsonObject(value)) &&
      !((name === 'alert' || name === 'title') && (value === '' || value === null)),
  );
