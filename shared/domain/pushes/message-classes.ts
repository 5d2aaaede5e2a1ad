/**
 * Portable message classes (protocol/push.md#message-classes). Vendors limit marketing messages per
 * device and day, and recognize service messages by their own label. `connectors/contract` contains
 * the label of each vendor for each class.
 */

/** Side of a class: vendors limit marketing messages, and need a right for service messages. */
export type ClassSide = 'service' | 'marketing';

/** All classes with their sides. */
export const messageClasses = {
  im: 'service',
  call: 'service',
  account: 'service',
  finance: 'service',
  order: 'service',
  express: 'service',
  todo: 'service',
  travel: 'service',
  health: 'service',
  device: 'service',
  mail: 'service',
  subscription: 'service',
  news: 'marketing',
  content: 'marketing',
  social: 'marketing',
  marketing: 'marketing',
} as const satisfies Record<string, ClassSide>;

export type MessageClass = keyof typeof messageClasses;

const isClass = (name: string): name is MessageClass => Object.hasOwn(messageClasses, name);

/** Names of all classes, in the order of the documentation. */
export const messageClassNames = Object.keys(messageClasses).filter(isClass);

/** Entry of `messageClasses` in a profile that transactional pushes without a class use. */
export const defaultClass = 'default';

/** Names that `messageClasses` of a profile may contain. */
export type ProfileClass = MessageClass | typeof defaultClass;

export const profileClassNames: readonly ProfileClass[] = [defaultClass, ...messageClassNames];
