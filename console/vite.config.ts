import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'

const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Has the font of Latin letters come with the first files, so that no text changes its width. */
const preloadFont: Plugin = {
  name: 'preload-font',
  transformIndexHtml: {
    order: 'post',
    handler: (_, { bundle = {} }) =>
      Object.keys(bundle)
        .filter((file) => /inter-latin-wght-normal.*[.]woff2$/.test(file))
        .map((file) => ({
          tag: 'link',
          attrs: { rel: 'preload', as: 'font', type: 'font/woff2', href: `./${file}`, crossorigin: true },
          injectTo: 'head',
        })),
  },
}

/** Every address in the build is relative, so that it works below any path. The server compresses nothing: the build does. */
export default defineConfig({
  base: './',
  plugins: [react(), tailwindcss(), preloadFont],
  resolve: {
    alias: [
      { find: /^#contract\//, replacement: folder('../contract/src/') },
      { find: /^#sdk\//, replacement: folder('../sdk/src/') },
    ],
  },
  build: { target: 'es2023', assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 700 },
  server: {
    host: '127.0.0.1',
    // A service beside it, as `npm run dev` starts one.
    proxy: Object.fromEntries(
      ['/api', '/login', '/logout', '/account', '/docs', '/oauth2', '/invite', '/device'].map((path) => [
        path,
        { target: 'http://127.0.0.1:8080', changeOrigin: false },
      ]),
    ),
  },
})
