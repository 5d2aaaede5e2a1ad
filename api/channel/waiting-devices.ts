import type { DeviceName } from '../../shared/db/tables/channel-sessions.ts';
import type { Connection } from './connection.ts';

/** Maximum number of apps to search at a time, because each needs a statement. */
const appsPerLookup = 8;

/** Devices of one app to search for. */
export interface Lookup {
  appId: string;
  installationIds: string[];
}

/**
 * Connections whose installation does not exist. An Android app connects while it saves its
 * installation for the first time, and its SDK never reconnects after a refusal
 * (protocol/channel.md#login-before-the-installation-is-saved).
 */
export class WaitingDevices {
  readonly #byApp = new Map<string, Map<string, Connection>>();
  readonly #names = new Map<Connection, DeviceName>();

  get size(): number {
    return this.#names.size;
  }

  /** Adds a connection. Returns the previous waiting connection of the same device. */
  add(connection: Connection, { appId, installationId }: DeviceName): Connection | undefined {
    const ofApp = this.#byApp.get(appId) ?? new Map<string, Connection>();
    const previous = ofApp.get(installationId);
    if (previous) this.#names.delete(previous);
    this.#byApp.set(appId, ofApp.set(installationId, connection));
    this.#names.set(connection, { appId, installationId });
    return previous;
  }

  /** Removes a connection. Returns the name of its device, or undefined if it did not wait. */
  remove(connection: Connection): DeviceName | undefined {
    const name = this.#names.get(connection);
    if (!name) return undefined;
    this.#names.delete(connection);
    const ofApp = this.#byApp.get(name.appId);
    ofApp?.delete(name.installationId);
    if (ofApp?.size === 0) this.#byApp.delete(name.appId);
    return name;
  }

  find({ appId, installationId }: DeviceName): Connection | undefined {
    return this.#byApp.get(appId)?.get(installationId);
  }

  ofApp(appId: string): Connection[] {
    return [...(this.#byApp.get(appId)?.values() ?? [])];
  }

  /**
   * Returns at most `devices` devices to search for. Each call continues with other apps, and with
   * other devices of an app.
   */
  next(devices: number): Lookup[] {
    const apps = [...this.#byApp].slice(0, appsPerLookup);
    let left = devices;
    return apps.flatMap(([appId, ofApp], i) => {
      const entries = [...ofApp].slice(0, Math.ceil(left / (apps.length - i)));
      left -= entries.length;
      for (const [installationId, connection] of entries) {
        ofApp.delete(installationId);
        ofApp.set(installationId, connection);
      }
      this.#byApp.delete(appId);
      this.#byApp.set(appId, ofApp);
      return entries.length === 0 ? [] : [{ appId, installationIds: entries.map(([id]) => id) }];
    });
  }
}
