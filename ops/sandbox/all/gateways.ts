/** All gateways together: one stand-in for each connector, on free ports or on ports in a row. */
import { startApnsGateway } from '../apns/server.ts';
import { startFcmGateway } from '../fcm/server.ts';
import type { SandboxOptions } from '../http/server.ts';
import { type CertificateAuthority, openCertificateAuthority } from '../kit/certificates.ts';
import { startHonorGateway } from '../vendors/honor/server.ts';
import { startHuaweiGateway } from '../vendors/huawei/server.ts';
import { startMeizuGateway } from '../vendors/meizu/server.ts';
import { startOppoGateway } from '../vendors/oppo/server.ts';
import { startVivoGateway } from '../vendors/vivo/server.ts';
import { startXiaomiGateway } from '../vendors/xiaomi/server.ts';
import { createSandboxSecrets, type SandboxSecrets } from './secrets.ts';
import { type Gateways, type Stand, standsOf } from './stands.ts';

export interface Sandbox {
  secrets: SandboxSecrets;
  gateways: Gateways;
  /** The same, all alike. */
  stands: Stand[];
  close(): Promise<void>;
}
/** Where a gateway listens, and whose certificate it shows. */
interface Place extends SandboxOptions {
  authority: CertificateAuthority;
}

export interface StartOptions {
  secrets?: SandboxSecrets;
  host?: string;
  /** The first of as many ports in a row as there are gateways; absent: free ones. */
  firstPort?: number;
  /** How many of the last requests each remembers whole. */
  keptRequests?: number;
}

/** Starts one gateway of each kind, in the order of protocol/admin-api.md#credentials-of-a-push-profile; resolves when all listen. */
export async function startGateways(options: StartOptions = {}): Promise<Sandbox> {
  const secrets = options.secrets ?? (await createSandboxSecrets());
  const authority = await openCertificateAuthority(secrets.authority);
  const { firstPort, host = '127.0.0.1' } = options;
  const open: { close(): Promise<void> }[] = [];
  const started = <G extends { close(): Promise<void> }>(gateway: G): G => {
    open.push(gateway);
    return gateway;
  };
  const close = async () => void (await Promise.all(open.map((gateway) => gateway.close())));
  const place = (i: number): Place => ({
    authority,
    host,
    ...(options.keptRequests === undefined ? {} : { keptRequests: options.keptRequests }),
    ...(firstPort === undefined ? {} : { port: firstPort + i }),
  });
  try {
    const gateways = {
      apns: started(await startApnsGateway({ ...place(0), keys: [secrets.apns] })),
      fcm: started(await startFcmGateway({ ...place(1), account: secrets.fcm })),
      huawei: started(await startHuaweiGateway({ ...place(2), app: secrets.vendor_a })),
      xiaomi: started(await startXiaomiGateway({ ...place(3), ...secrets.vendor_b })),
      meizu: started(await startMeizuGateway({ ...place(4), ...secrets.vendor_c })),
      oppo: started(await startOppoGateway({ ...place(5), app: secrets.vendor_d })),
      vivo: started(await startVivoGateway({ ...place(6), app: secrets.vendor_e })),
      honor: started(await startHonorGateway({ ...place(7), app: secrets.vendor_f })),
      google: started(await startFcmGateway({ ...place(8), account: secrets.vendor_g })),
    };
    return { secrets, gateways, stands: standsOf(secrets, gateways), close };
  } catch (error) {
    await close();
    throw error;
  }
}
