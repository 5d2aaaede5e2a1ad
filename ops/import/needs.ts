import type { InstallationDraft } from '../../shared/domain/installations/installation.ts';
import {
  type ConnectorId,
  isAppleDeviceType,
  requestedConnector,
  vendorOfDevice,
} from '../../shared/domain/labels.ts';
import { anonymous } from '../../shared/domain/users/auth-data.ts';
import type { UserDraft } from '../../shared/domain/users/user.ts';

/** Gateway and profile that a group of installations needs. */
export interface GatewayNeed {
  connector: ConnectorId;
  /**
   * Null if the installations name no profile. They then use `_default`, or any profile in the case
   * of APNs.
   */
  profile: string | null;
  installations: number;
}

/** Limit on the number of distinct names from the files. Further names are not counted. */
const maxNames = 100;

/**
 * Form of a bundle id. Clients choose the topic of an installation, and the check list shows it in
 * a command for the shell.
 */
const bundleId = /^[A-Za-z0-9.-]+$/;

/**
 * Counts what the imported records need in their app. Records of existing rows count too. Refused
 * records do not count.
 */
export class Needs {
  readonly #gateways = new Map<string, GatewayNeed>();
  readonly #platforms = new Map<string, number>();
  readonly #topics = new Set<string>();
  users = { all: 0, withEmail: 0, emailVerified: 0, withPhone: 0 };
  /** Installations without a gateway. Their devices use the device channel of this service. */
  deviceChannel = 0;

  addInstallation(draft: InstallationDraft): void {
    const connector = connectorOf(draft);
    if (connector === 'channel') {
      this.deviceChannel += 1;
      return;
    }
    const { topic } = draft;
    const isBundle = topic !== null && bundleId.test(topic);
    if (connector === 'apns' && isBundle && this.#topics.size < maxNames) this.#topics.add(topic);
    const key = draft.deviceProfile === null ? connector : `${connector}/${draft.deviceProfile}`;
    const existing = this.#gateways.get(key);
    if (existing) existing.installations += 1;
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
   * Third-party platforms with their numbers of users. Anonymous accounts are left out, because
   * they need no check.
   */
  get platforms(): { platform: string; users: number }[] {
    return [...this.#platforms].map(([platform, users]) => ({ platform, users }));
  }

  #addPlatform(platform: string): void {
    const existing = this.#platforms.get(platform);
    if (platform === anonymous || (existing === undefined && this.#platforms.size >= maxNames))
      return;
    this.#platforms.set(platform, (existing ?? 0) + 1);
  }
}

/** Returns the connector that a device uses if hybrid push is on (connectors/routing.ts). */
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
