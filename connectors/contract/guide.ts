import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import type { Language } from '../../shared/domain/texts/catalogue.ts';
import credentialTexts from '../../shared/domain/texts/credentials.json' with { type: 'json' };

/**
 * Texts of the help on credentials in one language, by the name of a gateway. A member without a
 * Chinese text is a type error.
 */
const texts: Readonly<Record<Language, typeof credentialTexts.en>> = credentialTexts;

/** Help on the credentials of one connector, for operators who fill in a push profile. */
export interface CredentialGuide extends Omit<GuideFacts, 'name'> {
  /** Sentence that says where the vendor shows the credentials. */
  source: string;
  /**
   * One line for each member of the credentials that belongs to this gateway, required members
   * first.
   */
  members: Readonly<Record<string, string>>;
  /** Files of the vendor that `carillon profile put` takes as they were downloaded, a line each. */
  files: readonly string[];
  /** Question for the member that the vendor's files lack. */
  question?: string;
}

/** What the help on credentials has beside its texts. */
export interface GuideFacts {
  /** Name of the gateway in the texts (`shared/domain/texts/credentials.json`). */
  name: Exclude<keyof typeof credentialTexts.en, 'every'>;
  /** Credentials of the right shape with made-up values. */
  example: JsonObject;
  /** True where the files may be a key or certificate in PEM, or a PKCS#12 file. */
  takesKeyFiles?: boolean;
  /** Member that the vendor's files lack: the command asks for it or reads it from a file. */
  askedSecret?: string;
  /** Reads a JSON file as downloaded from the vendor; undefined: not a file of this vendor. */
  fromFile?(document: JsonObject): VendorFile | undefined;
  /** Members that hold the content of such a file. */
  fileMembers?: readonly string[];
  /** Id of digits only, which no other member is: shows that two were swapped. */
  numericId?: string;
}

/** Returns the help on credentials in a language. */
export const guideIn = ({ name, ...facts }: GuideFacts, language: Language): CredentialGuide => ({
  ...facts,
  ...texts[language][name],
});

/**
 * Returns the members of the profiles of every gateway
 * (protocol/admin-api.md#credentials-of-a-push-profile).
 */
export const commonMembersIn = (language: Language): Readonly<Record<string, string>> =>
  texts[language].every.members;

/** The same members in English. */
export const commonMembers = commonMembersIn('en');

/** Members of the credentials in a file, or the reason why it is the wrong file. */
export type VendorFile =
  | {
      members: JsonObject;
      /** Name of the file. */
      file: string;
      /** Sentence about what the file does not hold. */
      lacks?: string;
    }
  | { error: string };

/** Types of Google's credential files that are no key of a service account. */
const otherGoogleTypes: ReadonlyMap<unknown, string> = new Map([
  [
    'external_account',
    'of the type external_account (workload identity federation), which holds no key',
  ],
  [
    'external_account_authorized_user',
    'of the type external_account_authorized_user, which holds no key',
  ],
  ['authorized_user', 'of the type authorized_user, the login of a person'],
  ['impersonated_service_account', 'of the type impersonated_service_account, which holds no key'],
  ['gdch_service_account', 'of the type gdch_service_account, of Google Distributed Cloud'],
]);

/**
 * Names a file of another kind or vendor by its members, with what it is for; undefined for a file
 * that is not known.
 */
export function foreignFile(document: JsonObject): string | undefined {
  const { client, installed, project_info: project, type, web } = document;
  const other = otherGoogleTypes.get(type);
  if (other !== undefined) return `a file of Google ${other}`;
  if (isJsonObject(project) && client !== undefined)
    return 'google-services.json, which belongs into the app';
  if (isJsonObject(installed) || isJsonObject(web))
    return 'a file of an OAuth client (client_secret_….json)';
  if (typeof document.apiKey === 'string' && typeof document.authDomain === 'string')
    return 'the configuration of Firebase for a web app';
  if (type === 'service_account') return 'a service account file of Google';
  if (typeof document.sub_account === 'string') return 'a service account file of Huawei';
  if (isJsonObject(document.app_info) || (isJsonObject(client) && client.app_id !== undefined))
    return 'agconnect-services.json of Huawei, which belongs into the app';
  return undefined;
}
