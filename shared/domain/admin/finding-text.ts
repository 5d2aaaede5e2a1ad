/** Text of a finding: the present state, and what to do; the latter is empty if nothing is to be done. */
export interface FindingText {
  detail: string;
  advice: string;
}

export type FindingTexts = Record<'en' | 'zh', FindingText>;

/** Returns the texts of a finding that needs no action. */
export const fine = (en: string, zh: string): FindingTexts => ({
  en: { detail: en, advice: '' },
  zh: { detail: zh, advice: '' },
});

/** Returns the texts of a finding with its advice: English, then Chinese. */
export const advised = (
  [detail, advice]: readonly [string, string],
  [detailZh, adviceZh]: readonly [string, string],
): FindingTexts => ({ en: { detail, advice }, zh: { detail: detailZh, advice: adviceZh } });
