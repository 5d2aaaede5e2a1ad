/** Texts of refusals about the texts of a push: translations and variables (`detailTexts`). */
export const textDetails = {
  languagesExpected: [
    'languages: expected an object by language, such as {"en": {"alert": …}}.',
    'languages 应为按语言的对象，例如 {"en": {"alert": …}}。',
  ],
  languagesMost: ['languages: at most {most} languages.', 'languages 最多 {most} 种语言。'],
  languageTags: [
    'languages: expected language tags, such as "en" or "zh-Hans".',
    'languages 的名称应为语言标签，例如 "en" 或 "zh-Hans"。',
  ],
  languagesTwice: ['languages: two of its tags mean the same.', 'languages 中有两个标签含义相同。'],
  translationExpected: [
    'languages: expected an object with members of data for each language.',
    'languages 中每种语言应为包含 data 成员的对象。',
  ],
  translationAlert: [
    'languages: alert is a string, or an object for iOS.',
    'languages 中的 alert 应为字符串，或用于 iOS 的对象。',
  ],
  translationTitle: ['languages: title is a string.', 'languages 中的 title 应为字符串。'],
  translationRefused: ['languages.{language}: {why}', '翻译 {language}：{why}'],
  variablesMost: ['variables: at most {most} variables.', 'variables 最多 {most} 个变量。'],
  variableName: [
    'variables: a name has letters, digits and _, and begins with a letter.',
    'variables 的名称由字母、数字和下划线组成，并以字母开头。',
  ],
  variableField: [
    'variables.{name}.field: expected a field, such as profile.name.',
    '变量 {name} 的 field 应为字段，例如 profile.name。',
  ],
  variableRefused: [
    'variables.{name}.field: {field} cannot be shown.',
    '变量 {name} 的字段 {field} 不能显示在文本中。',
  ],
  variableUnknown: [
    'variables: a text holds {placeholder}, which is none of them.',
    '文本中的 {placeholder} 不是已定义的变量。',
  ],
  variableUnused: [
    'variables.{name}: no alert or title holds it.',
    '变量 {name} 没有出现在任何 alert 或 title 中。',
  ],
} as const satisfies Record<string, readonly [en: string, zh: string]>;
