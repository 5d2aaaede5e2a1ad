import { reasonAs } from '../../shared/domain/reasons.ts';

/** Returns the reason of a wrong member of a push. `rule`: what it must be or have. */
export const unfitMember = (member: string, rule: string): string =>
  reasonAs(`${member} ${rule}`, 'memberUnfit', { member });

/** Returns the reason of a text that is too long for a gateway. */
export const tooLong = (member: string, mostChars: number, connector: string): string =>
  reasonAs(`${member} must have at most ${mostChars} characters for ${connector}`, 'tooLong', {
    member,
    connector,
  });

/**
 * Returns the reason of content that breaks a rule on several members, or on none that has a path.
 */
export const contentRefused = (text: string): string => reasonAs(text, 'contentRefused');
