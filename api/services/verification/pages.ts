/** Pages that links in mails open (protocol/admin-api.md#pages). */
import { escapeHtml, htmlPage, type Language, type Page } from '../server/html-page.ts';

interface PageText {
  title: string;
  text: string;
}

const texts = {
  verified: {
    en: { title: 'E-mail address confirmed', text: 'Thank you. You can close this page.' },
    zh: { title: '邮箱验证成功', text: '谢谢，您可以关闭此页面。' },
  },
  alreadyVerified: {
    en: {
      title: 'E-mail address already confirmed',
      text: 'Nothing more is to be done. You can close this page.',
    },
    zh: { title: '邮箱已验证', text: '无需再次操作，您可以关闭此页面。' },
  },
  invalidLink: {
    en: {
      title: 'This link does not work',
      text: 'It was used already, has expired, or is incomplete. Please ask for a new mail in the app.',
    },
    zh: { title: '链接无效', text: '链接已被使用、已过期或不完整，请在应用中重新发送邮件。' },
  },
  reset: {
    en: { title: 'Password changed', text: 'You can sign in with your new password now.' },
    zh: { title: '密码已重置', text: '现在可以使用新密码登录了。' },
  },
} satisfies Record<string, Record<Language, PageText>>;

const form = {
  en: {
    title: 'Set a new password',
    password: 'New password',
    repeat: 'New password again',
    submit: 'Set password',
    mismatch: 'The two passwords are not the same.',
    invalid: 'Please enter a password that is not blank and not longer than 1024 bytes.',
  },
  zh: {
    title: '设置新密码',
    password: '新密码',
    repeat: '再次输入新密码',
    submit: '设置密码',
    mismatch: '两次输入的密码不一致。',
    invalid: '请输入密码，不能为空白，长度不超过 1024 字节。',
  },
};

export const verifiedPage = (language: Language): Page => notice(200, language, texts.verified);
export const alreadyVerifiedPage = (language: Language): Page => notice(200, language, texts.alreadyVerified);
export const resetPage = (language: Language): Page => notice(200, language, texts.reset);
export const invalidLinkPage = (language: Language): Page => notice(404, language, texts.invalidLink);

/** Returns the page for a link whose path is malformed. */
export const brokenLinkPage = (language: Language): Page => notice(400, language, texts.invalidLink);

/** Returns the form for a new password, with the error of the previous attempt if there is one. */
export function passwordForm(appName: string, language: Language, error?: 'mismatch' | 'invalid'): Page {
  const text = form[language];
  const field = (name: string, label: string) =>
    `<label>${label}<input type="password" name="${name}" autocomplete="new-password" required></label>`;
  const body = [
    `<p>${escapeHtml(appName)}</p>`,
    ...(error ? [`<p role="alert">${text[error]}</p>`] : []),
    // A form without an action posts to the URL of the page, which contains the token.
    `<form method="post">${field('password', text.password)}${field('repeat', text.repeat)}`,
    `<button>${text.submit}</button></form>`,
  ];
  return htmlPage(error ? 400 : 200, { language, title: text.title, body });
}

function notice(status: number, language: Language, text: Record<Language, PageText>): Page {
  const { title, text: body } = text[language];
  return htmlPage(status, { language, title, body: [`<p>${body}</p>`] });
}
