import { equalInConstantTime, type Vault } from '../crypto.ts';

/** Whose receipts an address takes. */
export interface CallbackOwner {
  appId: string;
  connector: string;
}

/** 144 bits: gateways limit the address to 128 bytes. */
const secretCharacters = 24;

const contextOf = ({ appId, connector }: CallbackOwner) => `callback ${connector} ${appId}`;

/** The secret in the address of an app's receipts: derived, so that nothing is stored. */
export function callbackSecret(vault: Vault, owner: CallbackOwner): string {
  return vault.derive(contextOf(owner)).slice(0, secretCharacters);
}

/** Whether a secret that came with a receipt is this owner's; those of older keys count too. */
export function isCallbackSecret(vault: Vault, owner: CallbackOwner, given: string): boolean {
  return vault
    .derivedBy(contextOf(owner))
    .map((derived) => equalInConstantTime(derived.slice(0, secretCharacters), given))
    .includes(true);
}

/** `PUBLIC_URL/callbacks/:connector/:appId/:secret`: where a gateway sends the receipts of an app. */
export function callbackUrl(publicUrl: string, vault: Vault, owner: CallbackOwner): string {
  return `${publicUrl}/callbacks/${owner.connector}/${owner.appId}/${callbackSecret(vault, owner)}`;
}
