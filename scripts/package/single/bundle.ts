/** Bundles the command line, and the code of each thread, with their dependencies into one file each. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Message, type Plugin } from 'esbuild'

const FILES = 'src/system/packaged-files.ts'
const CRON = 'src/system/calendar/cron-expression.ts'

const exactly = (path: string): RegExp => new RegExp(`[\\\\/]${path.replaceAll('/', '[\\\\/]').replaceAll('.', '\\.')}$`)

/** better-sqlite3 looks for its library beside its code, where nothing is. */
const library = (root: string): Plugin => ({
  name: 'library of SQLite',
  setup: (builds) =>
    builds.onLoad({ filter: exactly('better-sqlite3/lib/binding.js') }, () => ({
      contents: `const { sqliteAddon } = require(${JSON.stringify(join(root, FILES))})
        let library
        exports.getBinding = () => (library ??= sqliteAddon())`,
      resolveDir: root,
    })),
})

const LATE = 'createRequire(import.meta.url)('

/** esbuild follows the `require` of CommonJS only. */
const lateRequire: Plugin = {
  name: 'library loaded at first use',
  setup: (builds) =>
    builds.onLoad({ filter: exactly(CRON) }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      if (!text.includes(LATE)) throw new Error(`${CRON} has no ${LATE} any more: change ${LATE} in scripts/package/single/bundle.ts`)
      return { contents: text.replace(LATE, 'require('), loader: 'ts' }
    }),
}

/** The one module that asks for its place does so only outside of an executable. */
const isExpected = ({ id, location }: Message): boolean => id === 'empty-import-meta' && location?.file === FILES

/** The CommonJS of a file of `src` with all that it imports. Equal sources give equal texts. Throws for a warning of esbuild. */
export async function bundled(root: string, entry: string): Promise<string> {
  const { outputFiles, warnings } = await build({
    absWorkingDir: root,
    entryPoints: [`src/${entry}.ts`],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    charset: 'utf8',
    // Names stay: they are those in the log and in stacks.
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: true,
    legalComments: 'none',
    // The client of PostgreSQL by the libpq of the system, which deferd does not use.
    external: ['pg-native'],
    logLevel: 'silent',
    // The texts have paths of node_modules, which may be a link to another folder.
    preserveSymlinks: true,
    plugins: [library(root), lateRequire],
  })
  const [strange] = warnings.filter((warning) => !isExpected(warning))
  if (strange !== undefined) throw new Error(`${strange.location?.file ?? entry}: ${strange.text}`)
  return outputFiles[0]?.text ?? ''
}
