import { isHarmonyDeviceType } from '../../../shared/domain/labels.ts';
import type { HttpTiming } from '../../../shared/http/client.ts';
import type { Connector } from '../../contract/connector.ts';
import { type HuaweiCredentials, huaweiCredentials, inspectHuawei, openHuawei } from './client.ts';
import {
  bodyOf,
  can,
  classError,
  type HuaweiPayload,
  limits,
  notShown,
  renderV1,
  testLimit,
} from './payload.ts';
import { renderV3, v3Error } from './payload-v3.ts';
import { readReceipts } from './receipts.ts';

/** Creates the connector. Tests pass shorter timeouts. */
export function huaweiConnector(timing?: HttpTiming): Connector<HuaweiCredentials, HuaweiPayload> {
  return {
    id: 'vendor_a',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: huaweiCredentials,
    render: (message, deviceType) =>
      isHarmonyDeviceType(deviceType) ? renderV3(message) : (v3Error(message) ?? renderV1(message)),
    preview: (payload) => bodyOf(payload, ['TOKEN']),
    // Huawei counts recipients (protocol/huawei.md#limits). AppGallery Connect shows the rate of an
    // app.
    rate: ({ ratePerSecond: perSecond }) =>
      perSecond === undefined ? null : { perSecond, counts: 'recipients', burst: 0, rampMs: 0 },
    testLimit,
    classError,
    notShown,
    inspect: inspectHuawei,
    receipts: readReceipts,
    open: (credentials, context) => openHuawei(credentials, context, timing),
  };
}

/** Huawei Push Kit (protocol/huawei.md). */
export const huawei = huaweiConnector();
