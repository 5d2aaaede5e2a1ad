import { openApiDocument } from '../../api/openapi/document.ts';
import { loadExamples } from '../../api/openapi/examples.ts';
import { loadRoutes } from '../../api/route-loader.ts';

/** Writes the OpenAPI document with line breaks, so that a change shows as a difference of lines. */
export const openApiFile = async (): Promise<string> =>
  `${JSON.stringify(openApiDocument(await loadRoutes(), await loadExamples()), null, 2)}\n`;
