/**
 * Policies as deferd fetches them, and as mta-sts-query of postfix-mta-sts-resolver does: both in a network namespace with an unbound at
 * 127.0.0.1:53 and a policy host at 127.0.0.1:443. Needs root.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { Operator } from '../support/operator.ts'
import { reasonToSkip } from '../support/required.ts'

const PROGRAMS = ['/usr/sbin/unbound', '/usr/bin/mta-sts-query', '/usr/bin/unshare', '/usr/sbin/ip']
const missing = PROGRAMS.filter((path) => !existsSync(path))
const lacking =
  missing.length > 0 ? `${missing.join(', ')} are missing: install unbound, postfix-mta-sts-resolver, util-linux, iproute2` : null
const reason = reasonToSkip('interop', lacking ?? (process.getuid?.() === 0 ? null : 'a network namespace needs root'))
const title = (text: string): string => (reason === null ? text : `${text} (not run: ${reason})`)

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Domains with a record, each with the outcome of both programs. `named` has a policy host with the certificate of others. */
const DOMAINS = {
  good: 'VALID',
  moved: 'FETCH_ERROR',
  lost: 'FETCH_ERROR',
  page: 'FETCH_ERROR',
  named: 'FETCH_ERROR',
  empty: 'FETCH_ERROR',
  none: 'NONE',
}

const script = (folder: string): string => `
set -e
ip link set lo up
mount --bind ${folder}/resolv.conf /etc/resolv.conf
unbound -c ${folder}/unbound.conf > ${folder}/unbound.log 2>&1 & NAMES=$!
mkfifo ${folder}/ready
${process.execPath} ${file('../support/policy-server.ts')} ${folder}/leaf.json > ${folder}/ready & POLICIES=$!
head -1 ${folder}/ready > ${folder}/started
until mta-sts-query none.test 2> /dev/null | grep -q NONE; do :; done
for domain in ${Object.keys(DOMAINS).join(' ')}; do
  SSL_CERT_FILE=${folder}/ca.pem mta-sts-query $domain.test 2> /dev/null | tr -d '\\n'; echo
  ${process.execPath} ${file('../../bin/deferd.js')} --config ${folder}/deferd.toml tls show $domain.test --fetch --json
done
kill $NAMES $POLICIES
`

function write(folder: string, queue: string): void {
  const authority = makeCertificate({ seed: 'Policy CA', isAuthority: true })
  const served = ['good', 'moved', 'lost', 'page', 'empty'].map((name) => `mta-sts.${name}.test`)
  const put = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  put('ca.pem', authority.cert)
  put('leaf.json', JSON.stringify(makeCertificate({ seed: 'policy host', names: served, issuer: authority })))
  put('resolv.conf', 'nameserver 127.0.0.1\n')
  put('deferd.toml', `queue_directory = "${queue}"\nsmtp_allow_private_addresses = "yes"\nsmtp_tls_mta_sts_CAfile = "${folder}/ca.pem"\n`)
  const records = Object.keys(DOMAINS).flatMap((name) =>
    name === 'none' ? [] : [`local-data: '_mta-sts.${name}.test. TXT "v=STSv1; id=1;"'`, `local-data: 'mta-sts.${name}.test. A 127.0.0.1'`],
  )
  const server = ['interface: 127.0.0.1@53', 'do-daemonize: no', 'username: ""', 'chroot: ""', `directory: "${folder}"`, 'use-syslog: no']
  const more = [`pidfile: "${folder}/unbound.pid"`, 'module-config: "iterator"', 'local-zone: "test." static', ...records]
  put('unbound.conf', ['server:', ...[...server, ...more].map((line) => `  ${line}`), ''].join('\n'))
  put('run.sh', script(folder))
}

test.skipIf(reason !== null)(title('both agree on policies, redirects, pages, certificates and missing records'), async () => {
  const operator = new Operator()
  const folder = mkdtempSync(join(tmpdir(), 'deferd-sts-'))
  await operator.own(async () => undefined)
  write(folder, operator.directory)
  const output = execFileSync('/usr/bin/unshare', ['-mn', 'bash', join(folder, 'run.sh')], { encoding: 'utf8', timeout: 60_000 })
  const lines = output.trim().split('\n')
  const outcomes = Object.keys(DOMAINS).map((name, i) => {
    const { published } = JSON.parse(lines[2 * i + 1] ?? '{}') as {
      readonly published: { readonly mode?: string; readonly failure?: string | null }
    }
    const own =
      published.mode !== undefined ? 'VALID' : published.failure?.startsWith('no MTA-STS record') === true ? 'NONE' : 'FETCH_ERROR'
    return [name, /STSFetchResult\.(\w+)/.exec(lines[2 * i] ?? '')?.[1], own]
  })
  expect(outcomes).toEqual(Object.entries(DOMAINS).map(([name, outcome]) => [name, outcome, outcome]))
  operator.leave()
})
