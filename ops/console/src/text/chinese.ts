import type chinese from '../../../../shared/domain/texts/zh.json';

/**
 * The Chinese half of the shared catalogue. It is empty until a page is in Chinese: the bundle has
 * it in place of `zh.json` (`bundle.ts`), so that an English page does not load it.
 */
const catalogue: Partial<typeof chinese> = {};

export default catalogue;

/** Loads the Chinese texts of the shared catalogue, and returns those of the pages. */
export async function loadChinese() {
  const [shared, own] = await Promise.all([
    import('../../../../shared/domain/texts/zh.json'),
    import('./zh.json'),
  ]);
  Object.assign(catalogue, shared.default);
  return own.default;
}
