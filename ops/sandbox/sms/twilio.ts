import { createHmac, randomBytes } from 'node:crypto';
import { type SentSms, type SmsCall, type SmsReply, SmsSandbox } from './server.ts';

/** Account of the sandbox of Twilio. */
export interface TwilioAccount {
  accountSid: string;
  authToken: string;
  /** Numbers, sender ids and messaging services that messages may come from. */
  senders: readonly string[];
}

const error = (status: number, code: number): SmsReply => ({
  status,
  body: {
    code,
    message: `Error ${code}`,
    more_info: `https://www.twilio.com/docs/errors/${code}`,
    status,
  },
});

const members = ['To', 'From', 'MessagingServiceSid', 'Body', 'StatusCallback'];

/**
 * Twilio's Messages resource of 2010-04-01: checks basic authentication, members, senders, numbers,
 * the length of the text and the address for receipts.
 */
export function createTwilio(account: TwilioAccount): SmsSandbox {
  const base = `/2010-04-01/Accounts/${account.accountSid}`;
  return new SmsSandbox((call, sandbox) => {
    const { accountSid, authToken } = account;
    const basic = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`;
    if (call.headers.authorization !== basic) return error(401, 20003);
    if (call.method === 'GET' && call.path === `${base}.json`)
      return { status: 200, body: { sid: accountSid, status: 'active' } };
    if (call.method !== 'POST' || call.path !== `${base}/Messages.json`) return error(404, 20404);
    return send(call, account, sandbox);
  });
}

function send(call: SmsCall, { senders }: TwilioAccount, sandbox: SmsSandbox): SmsReply {
  if (!/^application\/x-www-form-urlencoded(;|$)/.test(call.headers['content-type'] ?? ''))
    return error(400, 20001);
  const form = new URLSearchParams(call.body);
  if ([...form.keys()].some((name) => !members.includes(name))) return error(400, 20001);
  const to = form.get('To') ?? '';
  const from = form.get('MessagingServiceSid') ?? form.get('From');
  const body = form.get('Body') ?? '';
  const callback = form.get('StatusCallback');
  if (to === '') return error(400, 21604);
  if (!/^\+[1-9]\d{6,14}$/.test(to)) return error(400, 21211);
  if (from === null) return error(400, 21603);
  if (!senders.includes(from)) return error(400, from.startsWith('MG') ? 21701 : 21659);
  if (body === '') return error(400, 21602);
  if (body.length > 1600) return error(400, 21617);
  if (callback !== null && !isPublic(callback)) return error(400, 21609);
  const id = `SM${randomBytes(16).toString('hex')}`;
  sandbox.sent.push({ id, to, content: body, ...(callback === null ? {} : { callback }) });
  return { status: 201, body: { sid: id, status: 'queued', to, body, error_code: null } };
}

function isPublic(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && /^https?:$/.test(url.protocol) && !/^(localhost|127\.)/.test(url.hostname);
}

/** Returns the signed form that Twilio posts to the address for receipts of a message. */
export function twilioReceipt(
  { authToken, accountSid }: TwilioAccount,
  sms: SentSms,
  status: { MessageStatus: string; ErrorCode?: string },
): { url: string; headers: Record<string, string>; body: string } {
  const url = sms.callback ?? '';
  const form = new URLSearchParams({
    AccountSid: accountSid,
    ApiVersion: '2010-04-01',
    MessageSid: sms.id,
    SmsSid: sms.id,
    SmsStatus: status.MessageStatus,
    To: sms.to,
    ...status,
  });
  const signed = [...form.keys()].toSorted().map((name) => name + form.get(name));
  return {
    url,
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
      'x-twilio-signature': createHmac('sha1', authToken)
        .update(url + signed.join(''))
        .digest('base64'),
    },
    body: form.toString(),
  };
}
