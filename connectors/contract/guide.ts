import type { JsonObject } from '../../shared/domain/json.ts';

/** Help on the credentials of one connector, for operators who fill in a push profile. */
export interface CredentialGuide {
  /** Sentence that says where the vendor shows the credentials. */
  source: string;
  /** One line for each member of the credentials that belongs to this gateway, required members first. */
  members: Readonly<Record<string, string>>;
  /** Credentials of the right shape with made-up values. */
  example: JsonObject;
  /** Files of the vendor that `carillon profile put` takes as they were downloaded, a line each. */
  files: readonly string[];
  /** True where the files may be a key or certificate in PEM, or a PKCS#12 file. */
  takesKeyFiles?: boolean;
  /** Member that the vendor's files lack: the command asks for it or reads it from a file. */
  askedSecret?: { member: string; question: string };
  /** Reads a JSON file as downloaded from the vendor; undefined: not a file of this vendor. */
  fromFile?(document: JsonObject): VendorFile | undefined;
}

/** Members of the credentials in a file, or the reason why it is the wrong file. */
export type VendorFile = { members: JsonObject } | { error: string };

/** Members of the profiles of every gateway (protocol/admin-api.md#credentials-of-a-push-profile). */
export const commonMembers: Readonly<Record<string, string>> = {
  endpoint: 'base URL in place of the own one of the gateway, for a relay or a test',
  authEndpoint: 'base URL in place of the one that hands out access tokens',
  ca: 'PEM certificates that are trusted beside those of the system',
  transport: '"standard": the common HTTP client in place of our own',
  proxy: 'URL of an HTTP proxy to reach the gateway through, where the gateway allows one',
  ratePerSecond: 'the rate that the gateway grants this app, where it is not the published one',
};
