import { PageHeader } from '../../ui/page.tsx'

export default function OAuthappsPage() {
  return <PageHeader title="OAuth apps" />
}
