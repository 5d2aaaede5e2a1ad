import type { Code } from '../../../../shared/domain/texts/catalogue.ts';
import { shownText, type TextParams, writeFinding } from '../../../../shared/domain/texts/texts.ts';

/** Code of a finding. */
export type FindingCode = Code<'doctor'>;

/** Result of one check. */
export interface Finding {
  name: string;
  status: 'ok' | 'warn' | 'fail';
  /** Present state. */
  detail: string;
  /** Action to take; empty when the check succeeded. */
  advice: string;
  /** Code and parameters of the text. */
  code: FindingCode;
  params: TextParams;
}

interface CodedFinding {
  name: string;
  status: Finding['status'];
  code: FindingCode;
  params?: TextParams;
}

/** Returns a finding with its text in English. */
export const found = ({ name, status, code, params = {} }: CodedFinding): Finding => ({
  name,
  status,
  ...writeFinding({ code, params }, 'en'),
  code,
  params,
});

/** Returns a finding as documents show it. */
export const shownFinding = (finding: Finding) => ({ ...finding, ...shownText(finding) });

/** Returns the message of the innermost error, which has more detail (such as a refused connection). */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
