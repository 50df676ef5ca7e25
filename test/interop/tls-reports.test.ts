/** Mails of reports about TLS (RFC 8460), judged by opendkim, dkimpy and the mail parser of Python. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordName } from '../../src/dkim/key-record.ts'
import { loadDkimKey } from '../../src/dkim/keys.ts'
import { BOTH_KEYS, KEY_FILES } from '../support/dkim/dkim-keys.ts'
import { OtherVerifiers, verifiersAreMissing } from '../support/dkim/other-verifiers.ts'
import { reasonToSkip } from '../support/required.ts'
import { assertReport } from '../support/tls-report-schema.ts'
import { TlsWorld } from '../support/tls-world.ts'

const reason = reasonToSkip('interop', verifiersAreMissing())
const title = (text: string): string => (reason === null ? text : `${text} (not run: ${reason})`)

/** Prints what the mail parser finds, and whether dkimpy accepts the mail as a report, with records of the service type tlsrpt only. */
const SCRIPT = `
import dkim, email, email.policy, gzip, json, sys
content = open(sys.argv[1], 'rb').read()
keys = {(name + '.').encode(): text.encode() for name, text in json.load(open(sys.argv[2])).items()}
valid = [dkim.DKIM(content, tlsrpt='strict').verify(idx=i, dnsfunc=lambda name, timeout=5: keys.get(name)) for i in range(2)]
mail = email.message_from_bytes(content, policy=email.policy.default)
report, = [part for part in mail.walk() if part.get_content_type() == 'application/tlsrpt+gzip']
print(json.dumps({
    'valid': valid,
    'type': mail.get_content_type(),
    'report_type': mail['Content-Type'].params['report-type'],
    'subject': mail['Subject'],
    'file': report.get_filename(),
    'report': json.loads(gzip.decompress(report.get_content())),
    'defects': [str(one) for part in mail.walk() for one in part.defects],
}))
`

/** Records of both keys; `tags` are added to each. */
const records = (tags: string): ReadonlyMap<string, string> =>
  new Map(
    [
      { selector: 'r1', path: KEY_FILES.rsa, staged: false },
      { selector: 'e1', path: KEY_FILES.ed25519, staged: false },
    ].map((name) => [recordName(name.selector, 'us.example'), loadDkimKey(name).record.replace('; p=', `; ${tags}p=`)]),
  )

test.skipIf(reason !== null)(title('a report is a well-formed mail whose signatures hold, also with keys for reports only'), async () => {
  await using far = await TlsWorld.open({ smtp_tlsrpt_enable: true, myorigin: 'us.example', dkim: { 'us.example': { keys: BOTH_KEYS } } })
  far.secure('mx.good.example', { names: ['other.example'] }).publish('good.example', { id: 'one' })
  far.world.remote.setZone('_smtp._tls.good.example', { mx: [], a: [], aaaa: [], txt: ['v=TLSRPTv1; rua=mailto:tls@reports.example'] })
  await far.send('ann@good.example')
  await far.world.advance('30h')
  const [mail] = far.world.mailbox('tls@reports.example').mails()
  const content = Buffer.from(mail?.content ?? '', 'latin1')
  const both = ['rsa-sha256', 'ed25519-sha256']
  expect(await new OtherVerifiers(records('')).verdicts([content])).toEqual({ opendkim: [both], dkimpy: [both] })
  const folder = mkdtempSync(join(tmpdir(), 'deferd-tls-report-'))
  const [script, file, keys] = ['judge.py', 'report.eml', 'keys.json'].map((name) => join(folder, name)) as [string, string, string]
  writeFileSync(script, SCRIPT)
  writeFileSync(file, content)
  writeFileSync(keys, JSON.stringify(Object.fromEntries(records('s=tlsrpt; '))))
  const found = JSON.parse(execFileSync('/usr/bin/python3', [script, file, keys], { encoding: 'utf8' })) as Record<string, unknown>
  expect(found).toMatchObject({
    valid: [true, true],
    type: 'multipart/report',
    report_type: 'tlsrpt',
    subject: 'Report Domain: good.example Submitter: us.example Report-ID: <2026-01-01.good.example.tlsrpt@deferd.example>',
    file: 'us.example!good.example!1767225600!1767311999!2026-01-01.good.example.tlsrpt_deferd.example.json.gz',
    defects: [],
  })
  expect(assertReport(found['report']).policies[0]?.['failure-details']?.[0]?.['result-type']).toBe('certificate-host-mismatch')
})
