import { expect, test } from 'vitest'
import { receivedLine, type SmtpClient, type Trace } from '../../../src/queue/intake/received-header.ts'

const CLIENT: SmtpClient = { name: 'unknown', address: '192.0.2.7', helo: 'app.example', protocol: 'ESMTP', local: true, own: true }
const trace = (client: Trace['client'], recipients: readonly string[] = ['ann@far.example']): string =>
  receivedLine({
    client,
    myhostname: 'relay.example',
    mailName: 'Deferd',
    queueId: '4bcXYZ',
    recipients: recipients.map((address) => ({ address })),
    date: 'DATE',
  })

test.each([
  [
    'names the recipient when there is only one',
    trace(CLIENT),
    'Received: from app.example (unknown [192.0.2.7])\r\n\tby relay.example (Deferd) with ESMTP id 4bcXYZ\r\n\tfor <ann@far.example>; DATE\r\n',
  ],
  [
    'names none of several recipients',
    trace(CLIENT, ['ann@far.example', 'bob@far.example']),
    'Received: from app.example (unknown [192.0.2.7])\r\n\tby relay.example (Deferd) with ESMTP id 4bcXYZ;\r\n\tDATE\r\n',
  ],
  [
    'has the verified name without a HELO, and IPv6 in the form of RFC 5321',
    trace({ ...CLIENT, name: 'app.example', helo: '', address: '2001:db8::7' }, []),
    'Received: from app.example (app.example [IPv6:2001:db8::7])\r\n\tby relay.example (Deferd) with ESMTP id 4bcXYZ;\r\n\tDATE\r\n',
  ],
  [
    'has TLS protocol and cipher',
    trace({ ...CLIENT, protocol: 'ESMTPS', tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' } }, []),
    'Received: from app.example (unknown [192.0.2.7])\r\n\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384)\r\n\tby relay.example (Deferd) with ESMTPS id 4bcXYZ;\r\n\tDATE\r\n',
  ],
  ['names a local user by id', trace({ uid: 1000 }), 'Received: by relay.example (Deferd, from userid 1000)\r\n\tid 4bcXYZ; DATE\r\n'],
])('the Received field %s', (_, actual, expected) => expect(actual).toBe(expected))
