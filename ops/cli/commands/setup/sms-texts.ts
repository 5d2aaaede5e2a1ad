import { argument, choice, json, withDefault } from '../../arguments.ts';
import { group } from '../../command.ts';
import { say } from '../../language.ts';
import { row } from '../../row.ts';

const name = () => ({ name: argument('<name>') });
const confirm = (given: Readonly<Record<string, string>>) =>
  say('Delete {name}?', { name: given.name });
const show = () => say('It is deleted.');

/** `carillon sms-template …` and `sms-signature …`: SMS texts and their approval. */
export const smsTextCommands = [
  group('sms-template', 'SMS templates of an application'),
  row('sms-template list', 'list the SMS templates', {
    operation: 'listSmsTemplates',
    columns: { name: 'name', state: 'status', text: 'text' },
  }),
  row('sms-template show', 'show one', {
    example: 'sms-template show Code',
    operation: 'getSmsTemplate',
    path: name(),
  }),
  row('sms-template put', 'save a template; it waits for approval', {
    example: `sms-template put Code 'Your code is {{code}}' --type verification`,
    operation: 'putSmsTemplate',
    path: name(),
    body: {
      text: argument('<text>'),
      type: withDefault(
        choice('--type <type>', 'what it is for', ['verification', 'notification']),
        'notification',
      ),
      providers: json(
        '--providers <json or file>',
        'templates of SMS providers for the text, such as {"aliyun":{"code":"SMS_153055065"}}',
      ),
    },
  }),
  row('sms-template approve', 'approve one: messages use it from now on', {
    example: 'sms-template approve Code',
    operation: 'approveSmsTemplate',
    path: name(),
  }),
  row('sms-template delete', 'delete one', {
    example: 'sms-template delete Code --yes',
    operation: 'deleteSmsTemplate',
    path: name(),
    confirm,
    show,
  }),
  group('sms-signature', 'SMS signatures of an application'),
  row('sms-signature list', 'list the SMS signatures', {
    operation: 'listSmsSignatures',
    columns: { name: 'name', state: 'status' },
  }),
  row('sms-signature show', 'show one', {
    example: 'sms-signature show Shop',
    operation: 'getSmsSignature',
    path: name(),
  }),
  row('sms-signature put', 'save a signature; it waits for approval', {
    example: 'sms-signature put Shop',
    operation: 'putSmsSignature',
    path: name(),
    body: {},
  }),
  row('sms-signature approve', 'approve one: messages use it from now on', {
    example: 'sms-signature approve Shop',
    operation: 'approveSmsSignature',
    path: name(),
  }),
  row('sms-signature delete', 'delete one', {
    example: 'sms-signature delete Shop --yes',
    operation: 'deleteSmsSignature',
    path: name(),
    confirm,
    show,
  }),
];
