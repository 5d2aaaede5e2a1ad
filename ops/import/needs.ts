import type { InstallationDraft } from '../../shared/domain/installations/installation.ts';
import {
  type ConnectorId,
  isAppleDeviceType,
  requestedConnector,
  vendorOfDevice,
} from '../../shared/domain/labels.ts';
import { anonymous } from '../../shared/domain/users/auth-data.ts';
import type { UserDraft } from '../../shared/domain/users/user.ts';

/** Gateway and profile that installations require. */
export interface GatewayNeed {
  connector: ConnectorId;
  /**
   * Null when the installations name no profile: any APNs profile serves them, and `_default`
   * elsewhere.
   */
  profile: string | null;
  installations: number;
}

/** Limit on distinct names from the files. Further names are not counted. */
const maxNames = 100;

/**
 * Counts of what the records of an import require of their app, taken while the records are read,
 * of new and existing ones. Refused records do not count.
 */
export class Needs {
  readonly #gateways = new Map<string, GatewayNeed>();
  readonly #platforms = new Map<string, number>();
  readonly #topics = new Set<string>();
  users = { all: 0, withEmail: 0, emailVerified: 0, withPhone: 0 };
  /** Installations without a gateway: their devices connect to this service. */
  ownChannel = 0;

  addInstallation(draft: InstallationDraft): void {
    const connector = connectorOf(draft);
    if (connector === 'channel') {
      this.ownChannel += 1;
      return;
    }
    if (connector === 'apns' && draft.topic !== null && this.#topics.size < maxNames)
      this.#topics.add(draft.topic);
    const key = draft.deviceProfile === null ? connector : `${connector}/${draft.deviceProfile}`;
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

  /** Gateways and profiles, sorted by the number of installations. */
  get gateways(): GatewayNeed[] {
    return [...this.#gateways.values()].sort((a, b) => b.installations - a.installations);
  }

  /** Bundle ids that installations name. */
  get topics(): string[] {
    return [...this.#topics].sort();
  }

  /**
   * Third-party platforms with their numbers of users, without anonymous accounts, which need no
   * check.
   */
  get platforms(): { platform: string; users: number }[] {
    return [...this.#platforms].map(([platform, users]) => ({ platform, users }));
  }

  #addPlatform(platform: string): void {
    const known = this.#platforms.get(platform);
    if (platform === anonymous || (known === undefined && this.#platforms.size >= maxNames)) return;
    this.#platforms.set(platform, (known ?? 0) + 1);
  }
}

/** Returns the connector of a device when hybrid push is on (connectors/routing.ts). */
function connectorOf({
  deviceType,
  vendor: named,
  registrationId,
}: InstallationDraft): ConnectorId {
  if (isAppleDeviceType(deviceType)) return 'apns';
  const vendor = vendorOfDevice(deviceType, named);
  if (vendor === null || registrationId === null) return 'channel';
  return requestedConnector(vendor) ?? 'channel';
}
