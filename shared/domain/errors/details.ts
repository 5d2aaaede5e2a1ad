import { detailTexts } from './detail-texts.ts';

/** Text of a refusal or a warning as a code with its members, and in Chinese. */
export interface Detail {
  code: string;
  params: Record<string, string>;
  zh: string;
}

/** Chinese words of members whose values are words. */
const words: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  state: {
    scheduled: '已定时',
    queued: '排队中',
    'in-queue': '排队中',
    sending: '发送中',
    paused: '已暂停',
    done: '已完成',
    failed: '失败',
    cancelled: '已取消',
  },
  verb: { cancelled: '取消', paused: '暂停', resumed: '继续', approved: '批准', paced: '更改速率' },
  role: { viewer: '查看者', sender: '发送者', operator: '运维', owner: '所有者' },
};
const wordsOf: Readonly<Record<string, Readonly<Record<string, string>> | undefined>> = {
  ...words,
  needed: words.role,
};

const placeholder = /\{(\w+)\}/g;
const literal = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/** Returns the pattern of a template: `{name}` stands for any text. */
const patternOf = (template: string): RegExp =>
  new RegExp(
    `^${template
      .split(placeholder)
      .map((part, at) => (at % 2 === 0 ? literal(part) : `(?<${part}>.{1,500})`))
      .join('')}$`,
    's',
  );

const patterns = Object.entries(detailTexts).map(([code, [en, zh]]) => ({
  code,
  zh,
  pattern: patternOf(en),
}));

/** Finds the code of an English text; undefined for one that no template fits. */
export function detailOf(text: string): Detail | undefined {
  for (const { code, zh, pattern } of patterns) {
    const found = pattern.exec(text);
    if (!found) continue;
    const params = { ...found.groups };
    const written = zh.replaceAll(placeholder, (whole: string, name: string) => {
      const value = params[name];
      return value === undefined ? whole : (wordsOf[name]?.[value] ?? value);
    });
    return { code, params, zh: written };
  }
  return undefined;
}
