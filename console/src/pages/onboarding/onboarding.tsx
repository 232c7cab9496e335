import { PageHeader } from '../../ui/page.tsx'

export default function FirststepsPage() {
  return <PageHeader title="First steps" />
}
