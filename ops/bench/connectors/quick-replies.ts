/** Replies of success of each gateway, as its sandbox gives them, for a quick gateway. */
import type { ConnectorId } from '../../../shared/domain/labels.ts';

export interface QuickReply {
  /** The reply names devices of the request. */
  needsBody: boolean;
  bodyFor(body: readonly Buffer[]): string;
  /** The request carries a message to devices. */
  isSend: boolean;
}

type Route = readonly [path: RegExp, reply: QuickReply];

const reply = (content: object, isSend = false): QuickReply => {
  const text = JSON.stringify(content);
  return { needsBody: false, bodyFor: () => text, isSend };
};
const send = (content: object): QuickReply => reply(content, true);

const oauthToken = reply({ access_token: 'x'.repeat(160), expires_in: 3600, token_type: 'Bearer' });
const vivo = { result: 0, desc: '请求成功' };
const vivoTask = { ...vivo, taskId: '1175283746519265280' };
const messageId = '5f3c1b9ce1382335f21ac4d3';

const routes = new Map<ConnectorId, readonly Route[]>([
  [
    'vendor_a',
    [
      [/messages:send$/, send({ code: '80000000', msg: 'Success', requestId: '157190000000100000000101' })],
      [/token$/, oauthToken],
    ],
  ],
  [
    'vendor_b',
    [
      [
        /regid$/,
        send({
          result: 'ok',
          trace_id: 'Xdmsdm000000000001b',
          code: 0,
          data: { id: 'sdm000000000001b', day_quota: '10000', day_acked: '1000' },
          description: '成功',
          info: 'Received push messages for 1000 REGID',
        }),
      ],
    ],
  ],
  [
    'vendor_c',
    [[/pushByPushId$/, send({ code: '200', message: '', msgId: 'c2ee5c3b-000000000001', value: {} })]],
  ],
  [
    'vendor_d',
    [
      [/unicast_batch$/, { needsBody: true, bodyFor: oppoItems, isSend: true }],
      [
        /auth$/,
        reply({
          code: 0,
          message: 'Success',
          data: { auth_token: 'x'.repeat(36), create_time: 1_700_000_000_000 },
        }),
      ],
    ],
  ],
  [
    'vendor_e',
    [
      [/pushToList$/, send(vivo)],
      [/saveListPayload$/, reply(vivoTask)],
      [/auth$/, reply({ ...vivo, authToken: 'x'.repeat(36) })],
    ],
  ],
  [
    'vendor_f',
    [
      [
        /sendMessage$/,
        send({
          code: 200,
          message: 'success',
          data: { sendResult: true, requestId: 'h1', failTokens: [], expireTokens: [] },
        }),
      ],
      [/token$/, oauthToken],
    ],
  ],
  ['fcm', [[/token$/, oauthToken]]],
  ['vendor_g', [[/token$/, oauthToken]]],
]);

/** Returns the reply of a gateway to a call. */
export const quickReplyOf = (connector: ConnectorId, path: string): QuickReply | undefined =>
  routes.get(connector)?.find(([pattern]) => pattern.test(path))?.[1];

const beforeDevice = encodeURIComponent('"target_value":"');
const afterDevice = encodeURIComponent('"');

/** Returns one item per message of a batch to OPPO, with the device and a message id. */
function oppoItems(body: readonly Buffer[]): string {
  const text = Buffer.concat(body).toString('latin1');
  const items: string[] = [];
  for (let at = text.indexOf(beforeDevice); at >= 0; at = text.indexOf(beforeDevice, at)) {
    at += beforeDevice.length;
    const device = text.slice(at, text.indexOf(afterDevice, at));
    items.push(`{"messageId":"${messageId}","registrationId":"${device}"}`);
  }
  return `{"code":0,"message":"Success","data":[${items.join(',')}]}`;
}

/** Frames of FCM's response: status and content type, then the name of the message. */
export function fcmAnswer(): Buffer {
  const contentType = 'application/json; charset=UTF-8';
  const name = 'projects/carillon-sandbox/messages/0:1500415314455276%31bd1c9631bd1c96';
  const body = Buffer.from(`{\n  "name": "${name}"\n}\n`);
  // `:status: 200`, and `content-type` as a literal that is not indexed (RFC 7541 6.2.2, static table 31).
  const block = Buffer.from([0x88, 0x0f, 0x10, contentType.length, ...Buffer.from(contentType)]);
  const endHeaders = 4;
  const endStream = 1;
  return Buffer.concat([
    frameHead(block.length, 1, endHeaders),
    block,
    frameHead(body.length, 0, endStream),
    body,
  ]);
}

const frameHead = (length: number, type: number, flags: number): Buffer =>
  Buffer.from([0, length >>> 8, length & 0xff, type, flags, 0, 0, 0, 0]);
