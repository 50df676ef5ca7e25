/** The files of the packages `deferd` and `deferd-mta`: their places in the system (hier(7), Debian Policy 9.1). */
import { gzipSync } from 'node:zlib'
import { NOTICES } from '../../src/system/packaged-files.ts'
import { copy, link, PROGRAM_MODE, text, type Entry } from './entry.ts'

/** Folder of the program, with Node and the dependencies. */
export const HOME = 'usr/lib/deferd'

export const NODE = `${HOME}/bin/node`

const PROGRAM = `${HOME}/bin/deferd.js`

export const CONFIGURATION = 'etc/deferd/deferd.toml'

const LOGROTATE = 'etc/logrotate.d/deferd'

/** Files that dpkg keeps when the administrator has changed them. */
export const CONFFILES: readonly string[] = [CONFIGURATION, LOGROTATE]

/** Postfix's commands by their place in Debian's package of Postfix. */
export const MTA_COMMANDS: readonly string[] = [
  'usr/sbin/sendmail',
  'usr/bin/mailq',
  'usr/bin/newaliases',
  'usr/sbin/postcat',
  'usr/sbin/postqueue',
  'usr/sbin/postsuper',
  'usr/sbin/qshape',
]

const gzipped = (content: string): Uint8Array => gzipSync(content, { level: 9 })

/** `../lib/deferd/bin/deferd.js` from a folder of /usr. */
const fromUsr = (path: string): string => `../${path.replace(/^usr\//, '')}`

/** Texts of both packages. */
export interface CommonTexts {
  readonly copyright: string
  /** The changelog in Debian's form. */
  readonly changelog: string
}

const common = (name: string, { copyright, changelog }: CommonTexts): readonly Entry[] => [
  text(`usr/share/doc/${name}/copyright`, copyright),
  text(`usr/share/doc/${name}/changelog.gz`, gzipped(changelog)),
]

/** Contents of the package `deferd`. Paths are those of the repository or of a build; `read` returns the text of one. */
export interface RelaySources extends CommonTexts {
  /** The stripped Node. */
  readonly node: string
  /** Text of the licences of the program, of Node and of the dependencies. */
  readonly notices: string
  /** Folder of the compiled sources, and the files in it. */
  readonly dist: string
  readonly compiled: readonly string[]
  /** Files of the dependencies by their path below the program: `node_modules/zod/index.js`. */
  readonly dependencies: ReadonlyMap<string, string>
  readonly manPages: readonly string[]
  readonly pages: readonly string[]
  readonly migrations: readonly string[]
  readonly read: (path: string) => string
  /** Files of the software bill of materials. */
  readonly boms: ReadonlyMap<string, string>
}

/** The launcher, started by the Node of the package: the kernel passes the name by which it was called. */
const launcher = (source: string): string => source.replace(/^#!.*/, `#!/${NODE}`)

/** The program, with Node and the dependencies. */
export const programEntries = ({ node, notices, dist, compiled, dependencies, migrations, read }: RelaySources): readonly Entry[] => [
  copy(node, NODE, PROGRAM_MODE),
  text(PROGRAM, launcher(read('bin/deferd.js')), PROGRAM_MODE),
  link('usr/bin/deferd', fromUsr(PROGRAM)),
  copy('package.json', `${HOME}/package.json`),
  text(`${HOME}/${NOTICES}`, notices),
  ...migrations.map((path) => copy(path, `${HOME}/${path}`)),
  ...compiled.filter((path) => !path.endsWith('.d.ts')).map((path) => copy(`${dist}/${path}`, `${HOME}/dist/${path}`)),
  ...[...dependencies].map(([path, from]) => copy(from, `${HOME}/${path}`)),
]

const operation = (read: RelaySources['read']): readonly Entry[] => [
  text(CONFIGURATION, read('scripts/package/debian/deferd.toml')),
  text(LOGROTATE, read('scripts/package/debian/deferd.logrotate')),
  copy('contrib/systemd/deferd.service', 'lib/systemd/system/deferd.service'),
  copy('contrib/completions/deferd.bash', 'usr/share/bash-completion/completions/deferd'),
  copy('contrib/completions/_deferd', 'usr/share/zsh/vendor-completions/_deferd'),
  copy('contrib/completions/deferd.fish', 'usr/share/fish/vendor_completions.d/deferd.fish'),
  text('usr/share/lintian/overrides/deferd', read('scripts/package/debian/deferd.lintian-overrides')),
]

const EXAMPLES = [
  'contrib/systemd/deferd.socket',
  'contrib/prometheus/deferd-alerts.yml',
  'contrib/grafana/deferd.json',
  'contrib/oauth/live-tenant.sh',
  'examples/microsoft-365.toml',
  'examples/printer-to-microsoft-365.toml',
  'examples/google.toml',
]

export const bomEntries = (boms: RelaySources['boms']): readonly Entry[] =>
  [...boms].map(([name, content]) => text(`usr/share/doc/deferd/${name}`, content))

const documentation = ({ manPages, pages, read, boms }: RelaySources): readonly Entry[] => [
  ...manPages.map((page) => text(`usr/share/${page.replace(/^man\//, 'man/man1/')}.gz`, gzipped(read(page)))),
  ...pages.map((page) => copy(page, `usr/share/doc/deferd/${page}`)),
  text('usr/share/doc/deferd/CHANGELOG.md.gz', gzipped(read('CHANGELOG.md'))),
  ...bomEntries(boms),
  ...EXAMPLES.map((path) => copy(path, `usr/share/doc/deferd/${path.replace('contrib/', 'examples/')}`)),
]

export const relayEntries = (sources: RelaySources): readonly Entry[] => [
  ...programEntries(sources),
  ...operation(sources.read),
  ...documentation(sources),
  ...common('deferd', sources),
]

export const mtaEntries = (texts: CommonTexts): readonly Entry[] => [
  ...MTA_COMMANDS.map((path) => link(path, fromUsr(PROGRAM))),
  // Debian Policy 11.6 names this path too.
  link('usr/lib/sendmail', '../sbin/sendmail'),
  ...MTA_COMMANDS.map((path) => link(`usr/share/man/man1/${path.slice(path.lastIndexOf('/') + 1)}.1.gz`, 'deferd.1.gz')),
  ...common('deferd-mta', texts),
]
