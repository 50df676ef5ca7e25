/** opendkim and dkimpy as verifiers of files, with keys from a table in place of DNS. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The Python of the system, which has the packages. */
const PYTHON = '/usr/bin/python3'

/** Reason why the verifiers cannot run; null when they can. */
export function verifiersAreMissing(): string | null {
  if (!existsSync('/usr/sbin/opendkim')) return 'opendkim is not installed (apt-get install opendkim)'
  try {
    execFileSync(PYTHON, ['-c', 'import dkim, nacl'], { stdio: 'ignore' })
    return null
  } catch {
    return 'dkimpy is not installed (apt-get install python3-dkim python3-nacl)'
  }
}

/** Verdicts of one verifier about one message: the algorithms whose signature is valid. */
export type Verdict = readonly string[]

const run = promisify(execFile)
const BUFFER = 256 * 1024 * 1024

const DKIMPY = `
import dkim, json, sys
keys = {(name + '.').encode(): text.encode() for name, text in json.load(open(sys.argv[1])).items()}
def dns(name, timeout=5):
    return keys.get(name if isinstance(name, bytes) else name.encode())
for path in sys.argv[2:]:
    content = open(path, 'rb').read()
    valid = []
    for index, algorithm in enumerate(['rsa-sha256', 'ed25519-sha256']):
        try:
            if dkim.DKIM(content).verify(idx=index, dnsfunc=dns):
                valid.append(algorithm)
        except Exception:
            pass
    print(json.dumps(valid))
`

/** Verifies messages with both programs. `records` has the texts of TXT records by name. */
export class OtherVerifiers {
  readonly #folder = mkdtempSync(join(tmpdir(), 'deferd-verifiers-'))
  readonly #config = join(this.#folder, 'opendkim.conf')
  readonly #keys = join(this.#folder, 'keys.json')
  readonly #script = join(this.#folder, 'dkimpy.py')

  constructor(records: ReadonlyMap<string, string>) {
    const table = join(this.#folder, 'records')
    writeFileSync(table, [...records].map(([name, text]) => `${name} ${text}\n`).join(''))
    writeFileSync(this.#keys, JSON.stringify(Object.fromEntries(records)))
    writeFileSync(this.#script, DKIMPY)
    const lines = ['Mode v', `TestDNSData file:${table}`, 'AuthservID test', 'AlwaysAddARHeader yes', 'MaximumSignaturesToVerify 5']
    writeFileSync(this.#config, lines.map((line) => `${line}\n`).join(''))
  }

  async verdicts(messages: readonly Buffer[]): Promise<{ readonly opendkim: readonly Verdict[]; readonly dkimpy: readonly Verdict[] }> {
    const files = messages.map((content, i) => {
      const path = join(this.#folder, `${i}.eml`)
      writeFileSync(path, content)
      return path
    })
    const [opendkim, dkimpy] = await Promise.all([this.#opendkim(files), this.#dkimpy(files)])
    return { opendkim, dkimpy }
  }

  /** opendkim prints one Authentication-Results field per file, in order. */
  async #opendkim(files: readonly string[]): Promise<readonly Verdict[]> {
    const { stdout } = await run('/usr/sbin/opendkim', ['-x', this.#config, '-vvv', '-t', files.join(',')], {
      maxBuffer: BUFFER,
      encoding: 'latin1',
    })
    const fields = stdout.split('### INSHEADER').slice(1)
    if (fields.length !== files.length) {
    }
    if (fields.length !== files.length) throw new Error(`opendkim reported ${fields.length} of ${files.length} messages`)
    return fields.map((text) =>
      text
        .split(';')
        .filter((part) => /\bdkim=pass\b/.test(part))
        .map((part) => /header\.a=([\w-]+)/.exec(part)?.[1] ?? ''),
    )
  }

  async #dkimpy(files: readonly string[]): Promise<readonly Verdict[]> {
    const { stdout } = await run(PYTHON, [this.#script, this.#keys, ...files], { maxBuffer: BUFFER })
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Verdict)
  }
}
