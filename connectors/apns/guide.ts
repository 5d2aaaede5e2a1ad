import type { CredentialGuide } from '../contract/guide.ts';

/** Apple's credentials (protocol/apns.md#hosts). */
export const apnsGuide: CredentialGuide = {
  source:
    'Apple Developer, "Certificates, Identifiers & Profiles": "Keys" makes the .p8 file (it can be downloaded once) and shows its Key ID; "Membership details" shows the Team ID; "Identifiers" shows the bundle id, which is the topic.',
  members: {
    auth: '"token" for a .p8 key, "certificate" for a certificate',
    teamId: 'token: the Team ID, ten letters and digits',
    keyId: 'token: the Key ID, ten letters and digits',
    privateKey: 'the key in PEM: the content of the .p8 file, or the key of the certificate',
    topics: 'token: list of the bundle ids that the key sends to',
    certificate: 'certificate: the certificate in PEM',
    topic: 'certificate: the bundle id that it was made for',
    environment: '"prod" or "dev" where the profile serves one of the two only',
  },
  example: {
    auth: 'token',
    teamId: 'ABCDE12345',
    keyId: 'KEY1234567',
    privateKey: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
    topics: ['com.example.app'],
  },
  takesKeyFiles: true,
  files: [
    'AuthKey_<key id>.p8 with --team <team id> --topic <bundle id> (--key <key id> where the name does not tell it)',
    'a .p12 file: its password is asked for, or read from --password-file; of several pairs, the one that is valid longest is taken (--topic chooses among apps)',
    "certificates and keys in PEM or DER (Apple's .cer), in one file or several",
  ],
};
