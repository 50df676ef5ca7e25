/** Files of the page for browsers: styles, scripts, icon. Their folder has a hash of their contents in its name, so that they are kept. */
import { createHash } from 'node:crypto'
import { PLOT_STYLE } from '../presentation/plots/svg-plot.ts'
import { route, type Route } from '../http/route-table.ts'
import { resource } from '../system/packaged-files.ts'

const TYPES = {
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'page.js': 'text/javascript; charset=utf-8',
  'live.js': 'text/javascript; charset=utf-8',
  'shared-stream.js': 'text/javascript; charset=utf-8',
  'live-values.js': 'text/javascript; charset=utf-8',
  'dialog.js': 'text/javascript; charset=utf-8',
  'loaded-screen.js': 'text/javascript; charset=utf-8',
  'renewal.js': 'text/javascript; charset=utf-8',
  'steady.js': 'text/javascript; charset=utf-8',
  'text-forms.js': 'text/javascript; charset=utf-8',
  'selection.js': 'text/javascript; charset=utf-8',
  'keys.js': 'text/javascript; charset=utf-8',
  'views.js': 'text/javascript; charset=utf-8',
  'copy.js': 'text/javascript; charset=utf-8',
  'secrets.js': 'text/javascript; charset=utf-8',
  'charts.js': 'text/javascript; charset=utf-8',
  'login.js': 'text/javascript; charset=utf-8',
} as const

const names = Object.keys(TYPES) as (keyof typeof TYPES)[]

const FILES: ReadonlyMap<string, string> = new Map(
  names.map((name) => [name, resource(`page/browser/${name}`) + (name === 'page.css' ? PLOT_STYLE : '')]),
)

const hash = createHash('sha256')
for (const text of FILES.values()) hash.update(text)

/** Folder of the files below the root: `static/HASH`. */
export const FILES_FOLDER = `static/${hash.digest('hex').slice(0, 12)}`

export const fileRoutes: readonly Route[] = names.map((name) =>
  route({
    method: 'GET',
    path: `/${FILES_FOLDER}/${name}`,
    role: 'anyone',
    handler: () => ({
      kind: 'text',
      status: 200,
      contentType: TYPES[name],
      text: FILES.get(name) ?? '',
      headers: { 'cache-control': 'public, max-age=31536000, immutable' },
    }),
  }),
)
