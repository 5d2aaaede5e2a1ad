/** Identifies the message of the outbox that an encrypted body belongs to. */
interface MessageContext {
  appId: string;
  kind: string;
  to: string;
  type: string;
}

/**
 * Contexts that encrypted values are bound to, one per kind of value. A value that is copied to
 * another row cannot be decrypted there. Each kind has an entry in `sealedColumns`
 * (shared/db/tables/secrets.ts), which `carillon secret rotate` processes.
 */
export const sealContexts = {
  app: (appId: string) => `app ${appId}`,
  profile: (appId: string, connector: string, name: string) =>
    `profile ${appId} ${connector} ${name}`,
  gatewayToken: (appId: string, connector: string) => `gateway token ${appId} ${connector}`,
  message: ({ appId, kind, to, type }: MessageContext) => `outbox ${appId} ${kind} ${type} ${to}`,
  receipt: (appId: string, connector: string, digest: string) =>
    `receipt ${appId} ${connector} ${digest}`,
  captcha: (appId: string, token: string) => `captcha ${appId} ${token}`,
  session: (appId: string, objectId: string) => `session ${appId} ${objectId}`,
  platform: (appId: string, platform: string, uid: string) =>
    `authData ${appId} ${platform} ${uid}`,
  webhook: (appId: string, name: string, column: string) => `webhook ${appId} ${name} ${column}`,
} as const;
