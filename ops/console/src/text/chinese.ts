import type chinese from '../../../../shared/domain/texts/zh.json';

/**
 * Chinese half of the shared catalogue. The bundler uses this empty object instead of `zh.json`
 * (`bundle.ts`), so that an English page does not load the Chinese texts.
 */
const catalogue: Partial<typeof chinese> = {};

export default catalogue;

/** Loads the Chinese texts of the shared catalogue. Returns the Chinese texts of the console. */
export async function loadChinese() {
  const [shared, own] = await Promise.all([
    import('../../../../shared/domain/texts/zh.json'),
    import('./zh.json'),
  ]);
  Object.assign(catalogue, shared.default);
  return own.default;
}
