/**
 * A newcomer at a shell: runs fenced blocks of the pages, and nothing else, in a folder with a checkout. Commands that change the
 * system are left out, and listed in `LEFT_OUT`. The home of the newcomer has no configuration except what the pages say.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const repository = join(import.meta.dirname, '../..')

/** Commands that no test runs, with the reason. */
export const LEFT_OUT: readonly (readonly [RegExp, string])[] = [
  [/^deferd tls (?:list|show|forget)/, 'needs a kept policy; test/cli/tls.test.ts runs it'],
  [/^deferd check domain\b/, 'needs DNS and hosts; test/cli/check-domain.test.ts and test/domain-check run it'],
  [/^npm ci$/, 'the checkout of the test has the packages already'],
  [/^npm ci --prefix clients\/openapi$/, 'needs the network; test/process/openapi-tools.test.ts uses the tools that it installs'],
  [/^npm ci && npm (?:test|pack)$/, 'the suite itself; test/package.test.ts packs'],
  [/^npm ci && npm run package$/, 'test/packages builds and installs the packages'],
  [/^npm (?:run|test)\b/, 'the suites and the benchmark themselves'],
  [/^NODE_OPTIONS=\S+ npx jest$/, 'jest is no dependency'],
  [/^sudo (?:npm|apt|useradd|install|cp|systemctl|dpkg-divert|ln|rm|chown|openssl)\b/, 'changes the system'],
  [/^printf .*\| sudo install\b/, 'changes the system'],
  [/^sudo deferd (?:oauth|queue flush) /, 'the newcomers run the same without sudo, in a folder of their own'],
  [/^sudo deferd check --user deferd\b/, 'needs the user deferd and the smarthost; test/cli/check-connect.test.ts'],
  [/^journalctl\b/, 'needs the journal of systemd'],
  [
    /^deferd sink --oauth(?: google| --oauth-certificate \S+)?$/,
    'ports may be in use; test/testkit/scripted/sink.test.ts runs these options',
  ],
  [
    /^deferd sink --(?:script|listen|tls)\b/,
    'needs faults.toml, and ports that may be in use; test/testkit/scripted/sink.test.ts runs these options',
  ],
  [/^npx deferd (?:sink$|start --config deferd\.toml$)/, 'ports may be in use; the script for CI on the same page starts both'],
  [/^deferd sink$/, 'port 2526 may be in use; the newcomer adds --listen'],
  [/^deferd simulate (?:contention|run)\b/, 'test/simulator/retry-guide.test.ts runs the commands of this page'],
  [/^exec \/usr\/local\/bin\/node\b/, 'paths of one machine'],
  [
    /^sudo deferd import postfix && sudo postsuper/,
    'needs a Postfix; test/packages/replaced-postfix.test.ts types the commands of this page',
  ],
  [/^deferd queue hold --all --yes$/, 'holds the mail of a restored database; test/long/cluster-page.long.ts'],
  [/^deferd queue reclass /, 'needs the classes of the page; test/cli/operations.test.ts runs it'],
  [/^deferd history resend /, 'needs returned mail; test/process/mass-bounce.test.ts runs it'],
  [/^deferd queue shares\b/, 'needs the shares of the page; test/cli/commands/queue-shares.test.ts runs it'],
  [/^helm install /, 'needs Helm and a cluster; test/process/helm-chart/helm-chart.test.ts renders the chart'],
  [/^deferd quota /, 'needs the quotas of the page; test/cli/commands/quota.test.ts runs it'],
  [/^deferd suppression /, 'needs the list of the page; test/cli/commands/suppression.test.ts runs it'],
  [/^deferd history erase /, 'erases what other commands of the page show; test/process/erasure.test.ts runs it'],
  [/^deferd provider /, 'needs a provider with mail; test/cli/commands/provider.test.ts runs it'],
  [/^deferd queue show \S+ --session(?: > dialogue\.txt)?$/, 'needs the message of the page; test/process/trace.test.ts runs it'],
  [/^deferd trace /, 'needs sessions; test/process/trace.test.ts runs it'],
  [/^deferd record /, 'needs a relay of others; test/process/record.test.ts runs it'],
  [/^npm ci && npm run package:single$/, 'needs packages of the registry; test/packages/single-x64.test.ts builds and runs it'],
  [
    /^(?:sudo podman|echo .* \| sudo tee|chmod \+x deferd-linux|\.\/deferd-linux|npm install --ignore-scripts|npx deferd start -o relayhost|printf .*(?:\.\/deferd-linux-x64|podman exec .* deferd|npx deferd|deferd) sendmail -v -f me@example\.com you@example\.net$)/,
    'needs the files of a release; test/packages types the commands of docs/install.md',
  ],
  [/^deferd retry /, 'needs hosts and files of others; test/process/retry.test.ts runs it'],
  [/^npx deferd lab$/, 'port 2570 may be in use; test/process/lab.test.ts runs it'],
  [/^deferd node /, 'test/process/nodes.test.ts runs it'],
  [/^npx deferd start -o node_name=mx|^npx deferd (?:node list|history list|sink --listen)/, 'test/long/cluster-page.long.ts'],
  [/^printf .*-o queue_directory=mx\d/, 'test/long/cluster-page.long.ts'],
  [
    /^deferd queue move --to (?:postgresql:|\/var\/lib\/deferd --final$)/,
    'needs a database; test/process/queue-move.test.ts moves to and from one',
  ],
]

export interface Result {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export const leftOut = (command: string): boolean => LEFT_OUT.some(([pattern]) => pattern.test(command))

/** Commands of a block, without comments and explanations in a second column. */
export const commandsIn = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) =>
      line
        .replace(/\s+#\s.*$/, '')
        .replace(/ {2,}\S.*$/, '')
        .trim(),
    )
    .filter((line) => line !== '' && !line.startsWith('#'))

export class Newcomer {
  readonly folder = mkdtempSync(join(tmpdir(), 'deferd-newcomer-'))
  readonly #env: NodeJS.ProcessEnv
  readonly #running: ChildProcess[] = []
  readonly #ran: Set<string>

  /** Adds each command that it runs, as on the page, to `ran`. Its relay listens on `port`. */
  constructor(ran: Set<string>, port: number) {
    this.#ran = ran
    for (const name of ['bin', 'src', 'migrations', 'examples', 'contrib', 'docs', 'node_modules', 'package.json'])
      symlinkSync(join(repository, name), join(this.folder, name))
    const programs = join(this.folder, '.programs')
    mkdirSync(programs)
    symlinkSync(join(repository, 'bin/deferd.js'), join(programs, 'deferd'))
    // npx finds deferd in the node_modules of a real checkout.
    for (const [name, script] of [
      ['npx', 'shift; exec deferd "$@"'],
      ['sudo', 'exec "$@"'],
    ] as const) {
      writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`)
      chmodSync(join(programs, name), 0o755)
    }
    const { DEFERD_CONFIG: _, ...env } = process.env
    this.#env = {
      ...env,
      PATH: `${programs}:${join(repository, 'node_modules/.bin')}:${env['PATH'] ?? ''}`,
      // Ports 25 and 2525 may be in use on the machine of the test.
      DEFERD_SMTPD_LISTEN: `127.0.0.1:${port}`,
    }
  }

  /** Writes the configuration file that a page describes, with the queue below the folder of the newcomer. */
  configure(toml: string): void {
    const file = join(this.folder, 'deferd.toml')
    writeFileSync(file, toml.replaceAll('/var/lib/deferd', join(this.folder, 'queue')).replaceAll('/etc/deferd', this.folder))
    this.#env['DEFERD_CONFIG'] = file
  }

  write(name: string, text: string, mode = 0o600): void {
    writeFileSync(join(this.folder, name), text, { mode })
  }

  copyExample(from: string, to: string): void {
    copyFileSync(join(repository, from), join(this.folder, to))
  }

  /** Runs a command of a page in bash, and expects that it succeeds. `replace` has what the page says to put in: a queue id for ID. */
  run(written: string, replace: Readonly<Record<string, string>> = {}): Result {
    this.#ran.add(written)
    const command = Object.entries(replace).reduce((line, [from, to]) => line.replaceAll(from, to), written)
    const { status, stdout, stderr } = spawnSync('bash', ['-c', command], {
      cwd: this.folder,
      env: this.#env,
      encoding: 'utf8',
      timeout: 240_000,
    })
    const result = { code: status, out: stdout, err: stderr }
    if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}${stdout}`)
    return result
  }

  /** Runs the commands of a block in order. */
  runBlock(text: string, replace: Readonly<Record<string, string>> = {}): readonly Result[] {
    const commands = commandsIn(text).filter((command) => !leftOut(command))
    return commands.map((command) => this.run(command, replace))
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name))
  }

  /** The text of a file of the checkout or of the newcomer. */
  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  /** Starts a command of a page, with an addition, and resolves with its output once that has the text. */
  async start(written: string, until: string, addition = ''): Promise<string> {
    this.#ran.add(written)
    const command = `${written.replace(/^npm ci && /, '')}${addition}`
    // A process group of its own, which can be ended as a whole.
    const options = { cwd: this.folder, env: this.#env, detached: true } as const
    const child = spawn('bash', ['-c', `exec ${command}`], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#running.push(child)
    let out = ''
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const take = (data: Buffer) => {
      out += data.toString()
      if (out.includes(until)) resolve(out)
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}: ${out}`)))
    return promise
  }

  /** Stops what was started, and waits for the end. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#running.splice(0).map(async (child) => {
        if (child.pid === undefined || child.exitCode !== null) return
        // The pipes are closed when the last process of the command has ended: npm start is npm and the daemon.
        const ended = new Promise<true>((resolve) => child.once('close', () => resolve(true)))
        child.kill('SIGTERM')
        if (await Promise.race([ended, sleep(30_000, false, { ref: false })])) return
        process.kill(-child.pid, 'SIGKILL')
        throw new Error('SIGTERM did not end all processes of the command')
      }),
    )
  }
}
