/** The hints that response tables give to operators, in Chinese; the hint is the key. */
export const hintsZh: Readonly<Record<string, string>> = {
  'APNs does not take the topic.': 'APNs 不接受该 topic。',
  'APNs wants a topic.': 'APNs 要求提供 topic。',
  'The credentials do not allow the topic: check the list of topics.':
    '凭证不允许使用该 topic：请检查 topic 列表。',
  'APNs refuses the certificate.': 'APNs 拒绝了证书。',
  'The certificate belongs to the other APNs environment: set "environment" to match it.':
    '证书属于 APNs 的另一环境：请将 environment 设为与之一致。',
  'APNs finds a fresh provider token expired: check the clock of this machine.':
    'APNs 认为刚签发的 provider token 已过期：请检查本机时钟。',
  'APNs forbids the action.': 'APNs 禁止该操作。',
  'APNs refuses the provider token: check teamId, keyId, privateKey and the clock of this machine.':
    'APNs 拒绝了 provider token：请检查 teamId、keyId、privateKey 和本机时钟。',
  'APNs wants a provider token.': 'APNs 要求提供 provider token。',
  'The key belongs to the other APNs environment: set "environment" to match it.':
    '密钥属于 APNs 的另一环境：请将 environment 设为与之一致。',
  'APNs found the request malformed; this is a defect of the connector.':
    'APNs 认为请求格式错误；这是通道的缺陷。',
  'The certificate has expired: upload a new one.': '证书已过期：请上传新证书。',
  'The gateway refuses the client certificate: it may be expired or revoked.':
    '网关拒绝了客户端证书：证书可能已过期或被吊销。',
  'The gateway asks for a client certificate: check the endpoint.': '网关要求客户端证书：请检查 endpoint。',
  'FCM knows none of the devices: check that the service account is of the project whose app they use.':
    'FCM 不认识任何设备：请确认服务账号属于应用所在的项目。',
  'The service account may not send: give it the role, and switch the FCM API on.':
    '服务账号没有发送权限：请授予角色，并启用 FCM API。',
  'Google issues no access token: check the service account and the clock of this machine.':
    'Google 没有签发访问令牌：请检查服务账号和本机时钟。',
  'FCM refuses a fresh access token: check the service account and the clock of this machine.':
    'FCM 拒绝了刚签发的访问令牌：请检查服务账号和本机时钟。',
  'Honor refuses a fresh access token: check appId, clientId and clientSecret.':
    '荣耀拒绝了刚签发的访问令牌：请检查 appId、clientId 和 clientSecret。',
  'Honor issues no access token: check clientId and clientSecret.':
    '荣耀没有签发访问令牌：请检查 clientId 和 clientSecret。',
  "Huawei does not accept this app's access token (80200001): check appId, appSecret and, for newer devices, serviceAccount.":
    '华为不接受该应用的访问令牌（80200001）：请检查 appId、appSecret，较新的设备还需检查 serviceAccount。',
  'Huawei calls a fresh access token expired (80200003): check appId, appSecret and, for newer devices, serviceAccount.':
    '华为认为刚签发的访问令牌已过期（80200003）：请检查 appId、appSecret，较新的设备还需检查 serviceAccount。',
  'Huawei calls a fresh JWT expired (80200005): check the clock of this machine.':
    '华为认为刚签发的 JWT 已过期（80200005）：请检查本机时钟。',
  'Huawei lets this app send no messages (80300002): switch Push Kit on in AppGallery Connect, and check that the devices are of this app and, outside China, that it has the right to push overseas.':
    '华为不允许该应用发送消息（80300002）：请在 AppGallery Connect 中开通 Push Kit，并确认设备属于该应用；在中国境外还需有海外推送权限。',
  'Huawei refuses high priority (80300011): the app has no right to it; leave urgency and importance at NORMAL.':
    '华为拒绝高优先级（80300011）：应用无权使用；请将 urgency 和 importance 设为 NORMAL。',
  'Huawei does not know the receipt address (80300013): check receipt_id in AppGallery Connect.':
    '华为不认识回执地址（80300013）：请在 AppGallery Connect 中检查 receipt_id。',
  'Huawei finds the JWT valid for too long (80300036): check the clock of this machine.':
    '华为认为 JWT 的有效期过长（80300036）：请检查本机时钟。',
  'Huawei has barred this app from sending (80300037): settle the violation in AppGallery Connect.':
    '华为已禁止该应用发送（80300037）：请在 AppGallery Connect 中处理违规。',
  'Huawei issues no access token: check appId and appSecret.':
    '华为没有签发访问令牌：请检查 appId 和 appSecret。',
  'Meizu refuses the signature: check appSecret.': '魅族拒绝了签名：请检查 appSecret。',
  'Meizu does not accept the credentials: check appId and appSecret.':
    '魅族不接受凭证：请检查 appId 和 appSecret。',
  'Meizu does not know the package name: see its console.': '魅族不认识该包名：请查看其后台。',
  'Meizu has put the app on its blacklist: see its console.': '魅族已将应用列入黑名单：请查看其后台。',
  'OPPO refuses a fresh access token: check appKey and masterSecret.':
    'OPPO 拒绝了刚签发的访问令牌：请检查 appKey 和 masterSecret。',
  'OPPO refuses the credentials: check appKey and masterSecret.':
    'OPPO 拒绝了凭证：请检查 appKey 和 masterSecret。',
  'OPPO refuses the time of the call: check the clock of this machine.':
    'OPPO 拒绝了请求的时间：请检查本机时钟。',
  'OPPO has this machine’s address on its blacklist: see its console.':
    'OPPO 已将本机地址列入黑名单：请查看其后台。',
  'OPPO does not let this app send: see its console.': 'OPPO 不允许该应用发送：请查看其后台。',
  'OPPO wants a template for this category, or another one: see private_msg_template_id and its console.':
    'OPPO 要求该 category 使用模板，或使用其他模板：请查看 private_msg_template_id 及其后台。',
  'OPPO does not accept category or notify_level: see its console.':
    'OPPO 不接受 category 或 notify_level：请查看其后台。',
  'OPPO limits this app altogether: ask its support.': 'OPPO 限制了整个应用：请联系其技术支持。',
  'OPPO issues no access token: check appKey and masterSecret.':
    'OPPO 没有签发访问令牌：请检查 appKey 和 masterSecret。',
  'A fresh access token is refused by vivo: check appId, appKey and appSecret.':
    'vivo 拒绝了刚签发的访问令牌：请检查 appId、appKey 和 appSecret。',
  'The access token is of another app, says vivo: check appId.':
    'vivo 表示访问令牌属于其他应用：请检查 appId。',
  'The credentials are refused by vivo: check appId, appKey and appSecret.':
    'vivo 拒绝了凭证：请检查 appId、appKey 和 appSecret。',
  'The time of the call is refused by vivo: check the clock of this machine.':
    'vivo 拒绝了请求的时间：请检查本机时钟。',
  'Push is closed for this app at vivo: see its console.': '该应用在 vivo 的推送功能已关闭：请查看其后台。',
  'The app is still in review at vivo: until then only test messages go, with pushMode 1.':
    '应用仍在 vivo 审核中：在此之前只能以 pushMode 1 发送测试消息。',
  'System messages are not switched on for this app at vivo: send with classification 0.':
    '该应用在 vivo 没有开通系统消息：请以 classification 0 发送。',
  'The classification or category is not accepted by vivo: see its list of categories.':
    'vivo 不接受该 classification 或 category：请查看其类别列表。',
  'No access token is given out by vivo: check appId, appKey and appSecret.':
    'vivo 没有签发访问令牌：请检查 appId、appKey 和 appSecret。',
  'Xiaomi refuses the credentials: check appSecret.': '小米拒绝了凭证：请检查 appSecret。',
  'Xiaomi does not let this app send: see its console.': '小米不允许该应用发送：请查看其后台。',
  'Xiaomi does not know the app: check appId, appSecret and packageName.':
    '小米不认识该应用：请检查 appId、appSecret 和 packageName。',
  'Xiaomi has put the app on its blacklist: see its console.': '小米已将应用列入黑名单：请查看其后台。',
  'Xiaomi does not accept the channel: it must be one that its console issued and approved.':
    '小米不接受该 channel：必须是其后台签发并批准的 channel。',
  'Xiaomi wants to review this message before it is sent: see its console.':
    '小米要求先审核该消息：请查看其后台。',
  'The stored credentials are not as expected: put the profile again.':
    '已保存的凭证不符合要求：请重新保存推送配置。',
};

/** Hints with a value in them. */
const withValue: readonly (readonly [RegExp, string])[] = [
  [
    /^The gateway answers with status (\d+): check the credentials, the endpoint and the app's rights there\.$/,
    '网关的响应状态码为 $1：请检查凭证、endpoint 以及应用在网关的权限。',
  ],
  [
    /^The gateway refuses the credentials with status (\d+): check them and the clock of this machine\.$/,
    '网关以状态码 $1 拒绝了凭证：请检查凭证和本机时钟。',
  ],
  [/^The gateway refuses the credentials with status (\d+)\.$/, '网关以状态码 $1 拒绝了凭证。'],
  [
    /^The certificate of the gateway is not trusted(?: \((\w+)\))?: check endpoint and ca\.$/,
    '网关的证书不受信任（$1）：请检查 endpoint 和 ca。',
  ],
  [/^The gateway answered (\S+) \((.+)\)\.$/, '网关的响应为 $1（$2）。'],
];

/** Returns a hint in Chinese; undefined if it is not known. */
export function hintInChinese(hint: string): string | undefined {
  const known = hintsZh[hint];
  if (known !== undefined) return known;
  const found = withValue.find(([pattern]) => pattern.test(hint));
  return found && hint.replace(found[0], found[1]).replace('（）', '');
}
