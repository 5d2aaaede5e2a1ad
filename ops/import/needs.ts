import type { InstallationDraft } from '../../shared/domain/installations/installation.ts';
import { askedConnector, type ConnectorId, isAppleDeviceType } from '../../shared/domain/labels.ts';
import { anonymous } from '../../shared/domain/users/auth-data.ts';
import type { UserDraft } from '../../shared/domain/users/user.ts';

/** A gateway and a profile of it that installations name. */
export interface GatewayNeed {
  connector: ConnectorId;
  /** Null where the installations name none: any profile of Apple's serves them, and `_default` elsewhere. */
  profile: string | null;
  installations: number;
}

/** Names are taken from the files: so many different ones are kept, the rest is counted by nobody. */
const maxNames = 100;

/**
 * What the records of an import need of their app, counted while they are read, whether they were there already or not.
 * Records that were refused do not count.
 */
export class Needs {
  readonly #gateways = new Map<string, GatewayNeed>();
  readonly #platforms = new Map<string, number>();
  readonly #topics = new Set<string>();
  users = { all: 0, withEmail: 0, emailVerified: 0, withPhone: 0 };
  /** Installations that no gateway serves: their devices connect to this service themselves. */
  ownChannel = 0;

  addInstallation(draft: InstallationDraft): void {
    const connector = connectorOf(draft);
    if (connector === 'channel') {
      this.ownChannel += 1;
      return;
    }
    if (connector === 'apns' && draft.topic !== null && this.#topics.size < maxNames)
      this.#topics.add(draft.topic);
    const key = JSON.stringify([connector, draft.deviceProfile]);
    const known = this.#gateways.get(key);
    if (known) known.installations += 1;
    else if (this.#gateways.size < maxNames)
      this.#gateways.set(key, { connector, profile: draft.deviceProfile, installations: 1 });
  }

  addUser({ email, emailVerified, mobilePhoneNumber, authData }: UserDraft): void {
    this.users.all += 1;
    if (email !== null) this.users.withEmail += 1;
    if (emailVerified === true) this.users.emailVerified += 1;
    if (mobilePhoneNumber !== null) this.users.withPhone += 1;
    for (const platform of Object.keys(authData ?? {})) this.#addPlatform(platform);
  }

  /** Gateways and profiles, those of most installations first. */
  get gateways(): GatewayNeed[] {
    return [...this.#gateways.values()].sort((a, b) => b.installations - a.installations);
  }

  /** Bundle ids that installations name. */
  get topics(): string[] {
    return [...this.#topics].sort();
  }

  /** Third-party platforms and how many users have an account there; nobody has to check anonymous ones. */
  get platforms(): { platform: string; users: number }[] {
    return [...this.#platforms].map(([platform, users]) => ({ platform, users }));
  }

  #addPlatform(platform: string): void {
    const known = this.#platforms.get(platform);
    if (platform === anonymous || (known === undefined && this.#platforms.size >= maxNames)) return;
    this.#platforms.set(platform, (known ?? 0) + 1);
  }
}

/** The way to a device when hybrid push is on (connectors/routing.ts). */
function connectorOf({ deviceType, vendor, registrationId }: InstallationDraft): ConnectorId {
  if (isAppleDeviceType(deviceType)) return 'apns';
  if (vendor === null || registrationId === null) return 'channel';
  return askedConnector(vendor) ?? 'channel';
}
