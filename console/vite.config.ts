import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Every address in the build is relative, so that it works below any path. The server compresses nothing: the build does. */
export default defineConfig({
  base: './',
  plugins: [react(), tailwindcss()],
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
