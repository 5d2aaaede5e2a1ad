import { connectors } from '../../../connectors/registry.ts';
import { candidatesOf, type Profile } from '../../../connectors/routing.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { type InstallationChanges, textIn } from '../../../shared/domain/installations/changes.ts';
import { keyIdOf, parseSubscription } from '../../../shared/domain/installations/subscription.ts';
import { isJsonObject, type Json } from '../../../shared/domain/json.ts';
import { isOperation } from '../../../shared/domain/objects/operations.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';

/** VAPID key that a page subscribes with, and its id. */
export interface WebPushKey {
  publicKey: string;
  keyId: string;
}

/** Public VAPID keys of an app's Web Push profiles (protocol/webpush.md#keys). */
export class WebPushKeys {
  readonly #deps: Pick<ApiDeps, 'appCache'>;

  constructor(deps: Pick<ApiDeps, 'appCache'>) {
    this.#deps = deps;
  }

  /**
   * Returns the key that pages subscribe with now. Throws error 404 if the app has no Web Push
   * profile of this name.
   */
  async current(appId: string, deviceProfile?: string): Promise<WebPushKey> {
    const name = profileName(deviceProfile);
    const key = await this.#find(appId, name);
    if (!key) throw refuse('notFound', detail('noWebPushKey', { name }));
    return key;
  }

  /**
   * Adds the id of the current key to a subscription that a body sets without one. Throws error 111
   * if the subscription is invalid.
   */
  async withKeyId(appId: string, changes: InstallationChanges): Promise<InstallationChanges> {
    const write = changes.writes.find(
      ({ path }) => path.length === 1 && path[0] === 'subscription',
    );
    const sent = write && subscriptionIn(write.value as Json);
    if (!write || !sent || parseSubscription(sent, 'subscription').keyId !== '') return changes;
    const key = await this.#find(appId, profileName(textIn(changes, 'deviceProfile')));
    if (!key) return changes;
    const value = { ...sent, keyId: key.keyId };
    const writes = changes.writes.map((one) => (one === write ? { ...one, value } : one));
    return { ...changes, writes };
  }

  async #find(appId: string, name: string): Promise<WebPushKey | undefined> {
    const profiles = await this.#deps.appCache.profiles(appId);
    const [publicKey] = publicKeysOf(profiles, name);
    return publicKey === undefined ? undefined : { publicKey, keyId: keyIdOf(publicKey) };
  }
}

const profileName = (deviceProfile = ''): string =>
  deviceProfile === '' ? '_default' : deviceProfile;

/** Returns the public VAPID keys of the Web Push profile of this name, the current key first. */
export function publicKeysOf(profiles: readonly Profile[], name: string): string[] {
  const found = candidatesOf(profiles)
    .get('webpush')
    ?.find((profile) => profile.name === name);
  return (found && connectors.get('webpush')?.publicKeys?.(found.credentials)) ?? [];
}

/** Returns a subscription that is written whole, also if it is JSON text. */
function subscriptionIn(value: Json): Record<string, Json> | undefined {
  if (typeof value === 'string') {
    try {
      return subscriptionIn(JSON.parse(value) as Json);
    } catch {
      return undefined;
    }
  }
  return isJsonObject(value) && !isOperation(value) ? value : undefined;
}
