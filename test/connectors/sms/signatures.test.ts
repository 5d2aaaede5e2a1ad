import { describe, expect, test } from 'vitest';
import { signAliyun, signTencent } from '../../../connectors/sms/signatures.ts';
import { twilioSignature } from '../../../shared/domain/messages/sms-receipts.ts';
import vectors from '../../fixtures/sms-signatures.json' with { type: 'json' };

/** The signatures of the vendors' documentation, and of their SDKs for random requests. */
describe('the signature of Aliyun', () => {
  test('is the published one (Request syntax and signature method V3, fixed parameters)', () => {
    const { headers } = signAliyun(
      {
        host: 'ecs.cn-shanghai.aliyuncs.com',
        path: '/',
        action: 'RunInstances',
        version: '2014-05-26',
        parameters: {
          RegionId: 'cn-shanghai',
          ImageId: 'win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd',
        },
        epochMs: Date.parse('2023-10-26T10:22:32Z'),
        nonce: '3156853299f313e23d1673dc12e1703d',
      },
      { keyId: 'YourAccessKeyId', secret: 'YourAccessKeySecret' },
    );
    expect(headers.authorization).toBe(
      'ACS3-HMAC-SHA256 Credential=YourAccessKeyId,' +
        'SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,' +
        'Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0',
    );
  });

  test('is that of the SDK for random requests', () => {
    expect(vectors.aliyun).toHaveLength(50);
    for (const { authorization, ...call } of vectors.aliyun) {
      const parameters = Object.fromEntries(
        Object.entries(call.parameters).map(([name, value]) => [name, String(value)]),
      );
      expect(signAliyun({ ...call, parameters }, call).headers.authorization).toBe(authorization);
    }
  });
});

describe('the signature of Tencent Cloud', () => {
  test('is the published one (Signature v3)', () => {
    const headers = signTencent(
      {
        host: 'cvm.tencentcloudapi.com',
        path: '/',
        service: 'cvm',
        action: 'DescribeInstances',
        version: '2017-03-12',
        region: 'ap-guangzhou',
        body: '{"Limit": 1, "Filters": [{"Values": ["\\u672a\\u547d\\u540d"], "Name": "instance-name"}]}',
        epochMs: 1_551_113_065_000,
      },
      {
        secretId: 'AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE',
        secretKey: 'Gu5t9xGARNpq86cd98joQYCN3EXAMPLE',
      },
    );
    expect(headers.authorization).toBe(
      'TC3-HMAC-SHA256 Credential=AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE/2019-02-25/cvm/tc3_request, ' +
        'SignedHeaders=content-type;host, ' +
        'Signature=72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168',
    );
  });

  test('is that of the SDK for random requests', () => {
    expect(vectors.tencent).toHaveLength(50);
    for (const { authorization, ...call } of vectors.tencent)
      expect(signTencent(call, call).authorization).toBe(authorization);
  });
});

describe('the signature of a callback of Twilio', () => {
  test('is the published one (Validating requests)', () => {
    const form = new URLSearchParams({
      Digits: '1234',
      To: '+18005551212',
      From: '+14158675309',
      Caller: '+14158675309',
      CallSid: 'CA1234567890ABCDE',
    });
    const url = 'https://mycompany.com/myapp.php?foo=1&bar=2';
    expect(twilioSignature('12345', url, form)).toBe('RSOYDt4T1cUTdK1PDd93/VVr8B8=');
  });

  test('is that of the SDK for random callbacks', () => {
    expect(vectors.twilio).toHaveLength(50);
    for (const { authToken, url, form, signature } of vectors.twilio) {
      const members = Object.entries(form).map(([name, value]) => [name, String(value)]);
      const parameters = new URLSearchParams(Object.fromEntries(members));
      expect(twilioSignature(authToken, url, parameters)).toBe(signature);
    }
  });
});
