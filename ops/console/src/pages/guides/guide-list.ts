import type { Language } from '../../../../../shared/domain/texts/catalogue.ts';
import type { GuideNode } from './guide-tree.ts';

export interface Guide {
  title: string;
  load: () => Promise<{ default: readonly GuideNode[] }>;
}

/**
 * Guides by their path below `/console/docs`. The path of the index is empty. The bundler replaces
 * this module with the list of the files (`ops/console/guides.ts`).
 */
export const guides: Readonly<Record<string, Partial<Record<Language, Guide>>>> = {};
