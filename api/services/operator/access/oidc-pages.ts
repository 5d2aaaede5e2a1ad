import { rightsClaims } from '../../../../shared/domain/admin/oidc-rights.ts';
import { escapeHtml, htmlPage, type Language, type Page } from '../../server/html-page.ts';

/** Pages of a failed login by OpenID Connect: plain HTML, without scripts. */

const again = '/console/oidc/start';
const login = '/console/login';

interface Text {
  title: string;
  text: string;
}

type Failure = 'begun' | 'down' | 'denied' | 'invalid' | 'unmapped' | 'busy' | 'off';

const statuses: Readonly<Record<Failure, number>> = {
  begun: 400,
  invalid: 400,
  denied: 403,
  unmapped: 403,
  off: 404,
  busy: 429,
  down: 503,
};

const claims = rightsClaims.map((name) => `<code>${name}</code>`);

const texts: Record<Language, Record<Failure, Text> & { again: string; token: string }> = {
  en: {
    begun: {
      title: 'The login has to begin again',
      text: 'It took longer than ten minutes, or it began in another browser.',
    },
    invalid: {
      title: 'The login is not valid',
      text: 'The answer of the identity provider was used already, has expired, or does not belong to this login.',
    },
    denied: {
      title: 'The identity provider refused the login',
      text: 'Ask those who run the identity provider.',
    },
    unmapped: {
      title: 'Your account has no right here',
      text: `The login worked, but no value of the claim ${claims.join(' or ')} is listed in <code>OIDC_ROLES</code> of this service.`,
    },
    off: { title: 'Page not found', text: 'This service has no login by OpenID Connect.' },
    busy: { title: 'Too many logins', text: 'Wait a minute, then try again.' },
    down: {
      title: 'The identity provider does not answer',
      text: 'Try again in a minute, or log in with a token.',
    },
    again: 'Begin again',
    token: 'Log in with a token',
  },
  zh: {
    begun: { title: '请重新登录', text: '登录超过了十分钟，或者是在另一个浏览器中开始的。' },
    invalid: {
      title: '登录无效',
      text: '身份提供方的应答已被使用、已过期，或不属于这次登录。',
    },
    denied: { title: '身份提供方拒绝了登录', text: '请联系身份提供方的管理员。' },
    unmapped: {
      title: '您的账户在此没有权限',
      text: `登录成功，但声明 ${claims.join(' 或 ')} 的值都不在本服务的 <code>OIDC_ROLES</code> 中。`,
    },
    off: { title: '页面不存在', text: '本服务没有启用 OpenID Connect 登录。' },
    busy: { title: '登录次数过多', text: '请等待一分钟后再试。' },
    down: { title: '身份提供方没有应答', text: '请一分钟后再试，或使用令牌登录。' },
    again: '重新登录',
    token: '使用令牌登录',
  },
};

/** Values of a person that a page shows, and the length of each. */
const maxShown = 20;
const maxChars = 100;

/** Returns the page of a failed login. `values` are those of the person's claims. */
export function loginFailurePage(
  failure: Failure,
  language: Language,
  values: readonly string[] = [],
): Page {
  const { [failure]: own, again: againText, token } = texts[language];
  const shown = values.slice(0, maxShown).map((value) => value.slice(0, maxChars));
  const list = shown.map((value) => `<li><code>${escapeHtml(value)}</code></li>`);
  return htmlPage(statuses[failure], {
    language,
    title: own.title,
    body: [
      `<p role="alert">${own.text}</p>`,
      ...(list.length === 0 ? [] : ['<ul>', ...list, '</ul>']),
      ...(failure === 'off' ? [] : [`<p><a href="${again}">${againText}</a></p>`]),
      `<p><a href="${login}">${token}</a></p>`,
    ],
  });
}
